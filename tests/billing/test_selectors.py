"""Which price holds, and what was spent."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.billing.pricing import PriceRow
from apps.billing.selectors import prices_now, spent_picos
from tests.factories import (
    ApiKeyFactory,
    BudgetFactory,
    DailyUsageFactory,
    PriceFactory,
    RouteFactory,
    ServerFactory,
    UsageRecordFactory,
)


@pytest.mark.django_db
def test_the_newest_price_that_has_begun_holds(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    server, now = ServerFactory.create(), timezone.now()
    for days, price in ((-10, 1), (-1, 2), (1, 3)):
        PriceFactory.create(
            server=server, input_per_million=price, effective_from=now + timedelta(days=days)
        )
    PriceFactory.create(server=server, upstream_model="other", effective_from=now)

    with django_assert_num_queries(1):
        prices = prices_now(now)

    assert set(prices) == {(server.pk, "upstream"), (server.pk, "other")}
    assert prices[server.pk, "upstream"].input_picos == 2_000_000
    assert prices_now(now + timedelta(days=2))[server.pk, "upstream"].input_picos == 3_000_000


@pytest.mark.django_db
def test_a_price_is_exact_to_its_sixth_decimal() -> None:
    price = PriceFactory.create(
        input_per_million=Decimal("0.000001"),
        output_per_million=Decimal("999999.999999"),
        per_request=Decimal("0.000001"),
        currency="CNY",
    )

    row = prices_now(timezone.now())[price.server_id, "upstream"]

    assert row == PriceRow(
        id=price.pk,
        currency="CNY",
        input_picos=1,
        output_picos=999_999_999_999,
        cached_input_picos=1,
        cache_write_picos=1,
        reasoning_picos=999_999_999_999,
        request_picos=1_000_000,
    )


SINCE = datetime(2026, 12, 1, 18, 30, tzinfo=UTC)


@pytest.mark.django_db
def test_spend_of_a_key_counts_whole_days_once_and_its_predecessors() -> None:
    old = ApiKeyFactory.create()
    key = ApiKeyFactory.create(team=old.team, rotated_from=old)
    budget = BudgetFactory.create(key=key)
    for holder, at, picos in (
        (key, SINCE - timedelta(seconds=1), 1),  # before
        (key, SINCE, 10),
        (old, SINCE + timedelta(hours=1), 100),
        (key, SINCE + timedelta(days=1), 10_000),  # in the daily sum below
    ):
        UsageRecordFactory.create(key=holder, at=at, cost_picos=picos, currency="USD")
    UsageRecordFactory.create(key=key, at=SINCE, cost_picos=5, currency="EUR")
    UsageRecordFactory.create(at=SINCE, cost_picos=5, currency="USD")
    DailyUsageFactory.create(key=key, day=SINCE.date(), cost_picos=999_999, currency="USD")
    day = (SINCE + timedelta(days=1)).date()
    DailyUsageFactory.create(key=key, day=day, cost_picos=10_000, currency="USD")

    assert spent_picos(budget, SINCE) == 10_110


@pytest.mark.django_db
def test_spend_of_a_team_and_of_a_route() -> None:
    route, key = RouteFactory.create(), ApiKeyFactory.create()
    UsageRecordFactory.create(key=key, route=route, at=SINCE, cost_picos=10, currency="USD")
    UsageRecordFactory.create(key=key, at=SINCE, cost_picos=1, currency="USD")
    UsageRecordFactory.create(key=key, at=SINCE, cost_picos=None)

    assert spent_picos(BudgetFactory.create(team=key.team), SINCE) == 11
    assert spent_picos(BudgetFactory.create(route=route), SINCE) == 10


@pytest.mark.django_db
def test_nothing_spent_is_zero() -> None:
    assert spent_picos(BudgetFactory.create(key=ApiKeyFactory.create()), SINCE) == 0

"""Parts that pages of other apps fetch: use and money of routes, keys and teams."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.billing import spend
from apps.billing.models import DailyUsage
from apps.core.models import User
from apps.keys.models import Budget, Limit
from tests.factories import (
    ApiKeyFactory,
    BudgetFactory,
    DailyUsageFactory,
    LimitFactory,
    RouteFactory,
    UsageRecordFactory,
)

As = Callable[[User], Client]
PICOS_PER_CENT = 10**10


@pytest.fixture
def site(viewer: User, console_as: As) -> Client:
    return console_as(viewer)


@pytest.mark.parametrize("count", [3, 30])
def test_one_answer_fills_the_places_of_all_routes(
    site: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        route = RouteFactory.create()
        DailyUsageFactory.create(
            route_name=route.name, requests=7, cost_picos=PICOS_PER_CENT, currency="USD"
        )

    with django_assert_num_queries(4):
        body = site.get("/requests/parts/routes-today/").content.decode()

    assert body.count("hx-swap-oob") == 2 * count
    assert body.count(">7<") == count
    assert body.count("$0.01") == count


def test_yesterday_is_not_today(site: Client) -> None:
    route = RouteFactory.create()
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    DailyUsageFactory.create(route_name=route.name, day=yesterday, requests=7)

    assert ">7<" not in site.get("/requests/parts/routes-today/").content.decode()


@pytest.mark.parametrize("count", [3, 30])
def test_keys_tell_last_use_and_cost_in_each_currency(
    site: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    keys = ApiKeyFactory.create_batch(count)
    for key in keys:
        UsageRecordFactory.create(key=key)
        for currency in ("USD", "EUR"):
            DailyUsageFactory.create(key=key, cost_picos=PICOS_PER_CENT, currency=currency)

    with django_assert_num_queries(4):
        ids = ",".join(str(key.pk) for key in keys)
        body = site.get(f"/requests/parts/keys-month/?ids={ids}").content.decode()

    assert body.count("€0.01 + $0.01") == count
    assert body.count("<time") == count


def test_teams_sum_their_keys(site: Client) -> None:
    key = ApiKeyFactory.create()
    other = ApiKeyFactory.create(team=key.team)
    for one in (key, other):
        DailyUsageFactory.create(key=one, requests=4)

    body = site.get(f"/requests/parts/teams-month/?ids={key.team_id}").content.decode()

    assert ">8<" in body


@pytest.mark.parametrize("ids", ["1;2", "x", ",".join("1" * 201)])
def test_ids_that_are_none_are_refused(site: Client, ids: str) -> None:
    assert site.get("/requests/parts/keys-month/", {"ids": ids}).status_code == 400


@pytest.mark.django_db
def test_days_without_a_request_are_in_the_chart_too() -> None:
    days = spend.usage_by_day(DailyUsage.objects.all(), days=30)

    assert len(days) == 30
    assert days[-1][0] == spend.today()
    assert {used.requests for _day, used in days} == {0}


def test_the_chart_of_a_key_sums_its_days(site: Client) -> None:
    key = ApiKeyFactory.create()
    DailyUsageFactory.create(key=key, requests=5, errors=1, input_tokens=10, output_tokens=20)
    DailyUsageFactory.create(requests=100)

    body = site.get(f"/requests/parts/usage-by-day/?key={key.pk}").content.decode()

    assert body.count("<rect") == 30
    for words in ("<dd>5</dd>", "<dd>1</dd>", "<dd>30</dd>"):
        assert words in body


@pytest.mark.parametrize("query", ["", "key=x", "key=1&team=1"])
def test_a_chart_is_of_one_thing(site: Client, query: str) -> None:
    assert site.get(f"/requests/parts/usage-by-day/?{query}").status_code == 400
    assert site.get(f"/requests/parts/allowance/?{query}").status_code == 400


def test_a_key_shows_its_limits_and_those_of_its_team(site: Client) -> None:
    key = ApiKeyFactory.create()
    LimitFactory.create(key=key, kind=Limit.Kind.RPM, value=4)
    LimitFactory.create(team=key.team, kind=Limit.Kind.TPM, value=100)
    LimitFactory.create(key=key, kind=Limit.Kind.CONCURRENCY, value=8)
    UsageRecordFactory.create(key=key, input_tokens=20, output_tokens=5)

    response = site.get(f"/requests/parts/allowance/?key={key.pk}")

    used = {use.limit.kind: (use.used, use.percent) for use in response.context["limits"]}
    assert used == {"rpm": (1, 25), "tpm": (25, 25), "concurrency": (None, None)}
    assert "of the team" in response.content.decode()


def test_a_budget_shows_what_the_ledger_holds_of_its_period(site: Client) -> None:
    key = ApiKeyFactory.create()
    BudgetFactory.create(key=key, amount=Decimal("0.04"), period=Budget.Period.MONTH)
    DailyUsageFactory.create(key=key, cost_picos=PICOS_PER_CENT, currency="USD")

    response = site.get(f"/requests/parts/allowance/?key={key.pk}")

    (use,) = response.context["budgets"]
    assert (use.spent, use.percent) == (Decimal("0.01"), 25)


def test_a_budget_of_nothing_is_used_up(site: Client) -> None:
    key = ApiKeyFactory.create()
    BudgetFactory.create(key=key, amount=0)

    (use,) = site.get(f"/requests/parts/allowance/?key={key.pk}").context["budgets"]

    assert use.percent == 100

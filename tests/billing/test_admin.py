"""Admin pages of prices and of the ledger."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.billing.models import Price
from apps.core.models import AuditEntry, User
from tests.factories import PriceFactory, ServerFactory, UsageRecordFactory

ConsoleAs = Callable[[User], Client]


@pytest.fixture
def client(console_as: ConsoleAs, key_manager: User) -> Client:
    return console_as(key_manager)


def _body(server_id: int, **changes: Any) -> dict[str, Any]:
    now = timezone.now()
    body = {
        "server": server_id,
        "upstream_model": "llama",
        "currency": "USD",
        "input_per_million": "0.15",
        "output_per_million": "0.60",
        "cached_input_per_million": "",
        "per_request": "0",
        "per_image": "0",
        "per_compute_second": "0",
        "effective_from_0": f"{now:%Y-%m-%d}",
        "effective_from_1": f"{now:%H:%M:%S}",
    }
    return body | changes


def test_a_price_is_added_and_shows_what_it_means(client: Client) -> None:
    server = ServerFactory.create()

    form = client.get(reverse("admin:billing_price_add")).content.decode()
    added = client.post(reverse("admin:billing_price_add"), _body(server.pk))

    assert 'id="price-example"' in form
    assert "billing/price_example.js" in form
    assert added.status_code == 302, added.content.decode()
    price = Price.objects.get()
    shown = client.get(reverse("admin:billing_price_change", args=[price.pk])).content.decode()
    assert "1,000 input tokens cost 0.00015 USD" in shown
    assert "costs 0.00045 USD" in shown
    assert AuditEntry.objects.get().action == "price.set"


@pytest.mark.parametrize(
    "changes",
    [
        {"input_per_million": "-1"},
        {"output_per_million": "1000001"},
        {"currency": "usd"},
        {"upstream_model": ""},
        {"server": "404"},
    ],
)
def test_a_bad_price_is_not_saved(client: Client, changes: dict[str, str]) -> None:
    page = client.post(
        reverse("admin:billing_price_add"), _body(ServerFactory.create().pk) | changes
    )

    assert page.status_code == 200
    assert Price.objects.count() == 0


def test_a_slip_of_units_has_to_be_confirmed(client: Client) -> None:
    old = PriceFactory.create(upstream_model="llama", input_per_million="0.15")
    body = _body(old.server_id, input_per_million="150")

    refused = client.post(reverse("admin:billing_price_add"), body)
    confirmed = client.post(reverse("admin:billing_price_add"), body | {"allows_jump": "on"})

    assert "Over 100 times the price that holds" in refused.content.decode()
    assert confirmed.status_code == 302
    assert Price.objects.count() == 2


def test_a_price_that_has_begun_is_not_changed(client: Client) -> None:
    price = PriceFactory.create()

    page = client.post(
        reverse("admin:billing_price_change", args=[price.pk]), _body(price.server_id)
    )

    assert page.status_code == 403


def test_a_price_to_come_is_taken_back(client: Client) -> None:
    begun = PriceFactory.create()
    to_come = PriceFactory.create(effective_from=timezone.now() + timedelta(days=1))

    for price in (begun, to_come):
        url = reverse("admin:billing_price_withdraw", args=[price.pk])
        assert client.get(url).status_code == 200
        client.post(url)

    assert list(Price.objects.all()) == [begun]


def test_prices_that_hold_are_found(client: Client) -> None:
    old = PriceFactory.create(effective_from=timezone.now() - timedelta(days=9))
    holds = PriceFactory.create(server=old.server)
    url = reverse("admin:billing_price_changelist")

    for value, expected in (("yes", [holds]), ("no", [old])):
        page = client.get(url, {"holds": value})
        assert list(page.context["cl"].result_list) == expected


@pytest.mark.parametrize("count", [3, 30])
def test_lists_cost_the_same_whatever_their_length(
    client: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    PriceFactory.create_batch(count)
    client.get(reverse("admin:billing_price_changelist"))

    with django_assert_num_queries(7):
        client.get(reverse("admin:billing_price_changelist"))


def test_the_ledger_is_only_looked_at(console_as: ConsoleAs, admin: User) -> None:
    record = UsageRecordFactory.create()
    client = console_as(admin)
    url = reverse("admin:billing_usagerecord_change", args=[record.pk])

    assert client.get(url).status_code == 200
    assert client.post(url, {"status": "error"}).status_code == 403

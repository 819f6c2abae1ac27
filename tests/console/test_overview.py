"""Pages that are put together from several apps: overview, palette, figures."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.template import Context, Template
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.core.models import User
from apps.core.templatetags import console
from apps.metrics.figures import Figures
from apps.metrics.selectors import current
from tests.factories import (
    ApiKeyFactory,
    DailyUsageFactory,
    OperationFactory,
    PlacementFactory,
    RouteFactory,
    ServedModelFactory,
    ServerFactory,
    TeamFactory,
)

As = Callable[[User], Client]


@pytest.fixture
def site(viewer: User, console_as: As) -> Client:
    return console_as(viewer)


def test_without_a_server_the_overview_says_what_comes_first(site: Client) -> None:
    assert "No server yet" in site.get("/").content.decode()


@pytest.mark.parametrize("count", [3, 30])
def test_the_overview_asks_few_questions_for_any_number_of_models(
    site: Client, count: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    server = ServerFactory.create()
    for _number in range(count):
        OperationFactory.create(placement=PlacementFactory.create(server=server))

    with django_assert_max_num_queries(13):
        html = site.get("/").content.decode()

    assert html.count('<tbody id="placement-') == count


def test_the_overview_shows_counts_money_and_what_changed(site: Client) -> None:
    PlacementFactory.create(observed="ready")
    PlacementFactory.create(observed="unavailable")
    DailyUsageFactory.create(requests=1204, cost_picos=420_000_000_000, currency="USD")

    html = site.get("/").content.decode()
    parts = site.get("/overview/summary/").content.decode()

    assert "today 1,204 requests" in html
    assert "$0.42" in html
    assert "/ 2</span>" in html
    assert "innerHTML:#ready-tile" in parts


def test_every_page_has_a_strict_policy_and_no_inline_script(site: Client) -> None:
    ServerFactory.create()
    response = site.get("/")

    html = response.content.decode()

    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert " style=" not in html
    assert " onclick=" not in html


def test_the_palette_finds_all_kinds_of_things(site: Client) -> None:
    ServerFactory.create(name="smol-server")
    ServedModelFactory.create(name="smol-model")
    RouteFactory.create(name="smol-route")
    ApiKeyFactory.create(name="smol-key", team=TeamFactory.create(name="smol-team"))

    places = site.get("/search/?q=SMOL").json()["places"]

    assert [place["label"] for place in places] == [
        "smol-server",
        "smol-model",
        "smol-route",
        "smol-key",
        "smol-team",
    ]
    assert all(site.get(place["url"]).status_code == 200 for place in places)


def test_the_palette_knows_request_ids_and_forgives_anything_else(site: Client) -> None:
    pk = uuid4()

    assert site.get(f"/search/?q={pk}").json()["places"][0]["url"] == f"/requests/{pk}/"
    assert site.get("/search/?q=").json() == {"places": []}
    assert site.get("/search/?q=%00%25'").json() == {"places": []}


def test_figures_take_the_versions_of_a_model_together(
    site: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = PlacementFactory.create(model__name="m")
    known = {
        ("m", 1): Figures(requests_per_second=1, latency_mean_ms=10, pending_requests=2),
        ("m", 2): Figures(requests_per_second=3, latency_mean_ms=50),
        ("other", 1): Figures(requests_per_second=99),
    }
    monkeypatch.setattr(current, "placement_figures", lambda _server_id: known)

    values = site.get(f"/figures/?placement={placement.pk}").json()["values"]

    assert values == {
        f"placement:{placement.pk}/requests_per_second": 4,
        f"placement:{placement.pk}/latency_mean_ms": 40,
        f"placement:{placement.pk}/pending_requests": 2,
    }


def test_figures_forgive_ids_that_are_none(site: Client, empty_redis: None) -> None:
    response = site.get(f"/figures/?placement=x&placement={10**30}&server=-1&server=7")

    assert response.json()["values"] == {}


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        ("0", "$0.00"),
        ("12.3456", "$12.35"),
        ("1234567.8", "$1,234,567.80"),
        ("0.42", "$0.42"),
        ("0.000213", "$0.000213"),
        ("0.0000000000012", "$0.000000000001"),
    ],
)
def test_money_shows_three_significant_digits_below_one(amount: str, written: str) -> None:
    assert console.money(Decimal(amount), "USD") == written


def test_numbers_have_separators_units_and_a_dash_for_nothing() -> None:
    assert console.number(1234567) == "1,234,567"
    assert console.number(3.14159) == "3.14"
    assert console.seconds(0.0084) == "8.4 ms"
    assert console.seconds(1.916) == "1.92 s"
    assert console.seconds(123) == "2 min 3 s"
    assert console.in_bytes(3.4 * 2**30) == "3.4 GiB"
    assert console.percent(0.375) == "38 %"
    assert {console.number(None), console.seconds(None), console.in_bytes(None)} == {console.DASH}
    assert {console.percent(None), console.money(None, "USD"), str(console.ago(None))} == {
        console.DASH
    }


def test_times_are_relative_with_the_exact_one_on_hover() -> None:
    then = timezone.now() - timedelta(minutes=3, seconds=5)

    html = str(console.ago(then))

    assert ">3 min ago</time>" in html
    assert "UTC" in html
    assert console.relative(timezone.now() + timedelta(hours=2, minutes=1)) == "in 2 h"


def test_a_block_can_be_repeated() -> None:
    parent = Template(
        "{% load console %}<title>{% block title %}{% endblock %}</title>"
        "<h1>{% repeat_block title %}</h1>"
    )
    child = Template("{% extends parent %}{% block title %}Fleet{% endblock %}")

    assert child.render(Context({"parent": parent})) == "<title>Fleet</title><h1>Fleet</h1>"

"""The request log in the console: list, filters, pages, CSV, explanation, lookup."""

import csv
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient, Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.billing.models import UsageRecord
from apps.core.models import User
from tests.factories import (
    ApiKeyFactory,
    PriceFactory,
    RouteFactory,
    ServerFactory,
    UsageRecordFactory,
    UserFactory,
)
from tests.support.responses import async_body

As = Callable[[User], Client]
QUERIES = 6


def _ids(response: Any) -> list[uuid.UUID]:
    return [record.pk for record in response.context["page"].records]


@pytest.fixture
def site(viewer: User, console_as: As) -> Client:
    return console_as(viewer)


@pytest.mark.parametrize("count", [3, 30])
def test_the_list_asks_the_same_few_questions_for_any_number_of_rows(
    site: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        UsageRecordFactory.create(route=RouteFactory.create(), server=ServerFactory.create())

    with django_assert_num_queries(QUERIES):
        response = site.get("/requests/")

    assert len(_ids(response)) == count


def test_who_is_not_signed_in_sees_no_request(client: Client, db: None) -> None:
    response = client.get("/requests/")

    assert response.status_code == 302
    assert "login" in response["Location"]


def test_an_empty_log_says_how_to_fill_it(site: Client) -> None:
    body = site.get("/requests/").content.decode()

    assert "No requests yet" in body


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("status=error", {"status": "error", "http_status": 502}),
        ("slower=2", {"duration_seconds": 2.5}),
        ("range=1h", {}),
    ],
)
def test_filters_keep_what_fits(site: Client, query: str, fits: dict[str, object]) -> None:
    wanted = UsageRecordFactory.create(**fits)
    UsageRecordFactory.create(at=timezone.now() - timedelta(hours=2))

    response = site.get(f"/requests/?{query}")

    assert _ids(response) == [wanted.pk]


def test_filters_by_name_of_team_route_and_server(site: Client) -> None:
    route, server = RouteFactory.create(name="meta/llama"), ServerFactory.create(name="gpu-1")
    key = ApiKeyFactory.create(team__name="search")
    wanted = UsageRecordFactory.create(key=key, route=route, server=server)
    UsageRecordFactory.create()

    for query in ("team=search", "route=meta/llama", "server=gpu-1", f"key={key.pk}"):
        assert _ids(site.get(f"/requests/?{query}")) == [wanted.pk]


def test_a_filter_that_holds_a_mistake_shows_nothing_and_says_why(site: Client) -> None:
    UsageRecordFactory.create()

    response = site.get("/requests/?slower=fast")

    assert _ids(response) == []
    assert "Enter a number" in response.content.decode()


def test_a_request_is_found_by_either_of_its_ids(site: Client) -> None:
    wanted = UsageRecordFactory.create(request_id="client-chose-this")
    UsageRecordFactory.create()

    assert _ids(site.get("/requests/?q=client-chose-this")) == [wanted.pk]
    assert _ids(site.get(f"/requests/?q={wanted.pk}")) == [wanted.pk]


def test_pages_follow_the_key_even_when_moments_are_equal(site: Client) -> None:
    moment = timezone.now()
    UsageRecordFactory.create_batch(60, at=moment)
    everything = list(UsageRecord.objects.values_list("pk", flat=True))

    def page(**place: str) -> Any:
        return site.get("/requests/", {"page_size": "25", **place})

    first = page()
    second = page(older=str(first.context["page"].older))
    third = page(older=str(second.context["page"].older))
    back = page(newer=str(third.context["page"].newer))

    assert _ids(first) + _ids(second) + _ids(third) == everything
    assert third.context["page"].older is None
    assert _ids(back) == _ids(second)


def test_a_broken_place_shows_the_newest(site: Client) -> None:
    record = UsageRecordFactory.create()

    assert _ids(site.get("/requests/?older=nonsense~1")) == [record.pk]


def test_the_page_learns_of_new_requests(site: Client) -> None:
    old = UsageRecordFactory.create(at=timezone.now() - timedelta(minutes=1))
    newest = str(site.get("/requests/").context["page"].newest)

    assert "new" not in site.get("/requests/news/", {"newest": newest}).content.decode()
    UsageRecordFactory.create_batch(2, key=old.key)

    assert "2 new requests" in site.get("/requests/news/", {"newest": newest}).content.decode()


@pytest.fixture
async def thread_database(transactional_db: None) -> AsyncIterator[None]:
    """The database as the thread of synchronous views sees it; its connection is closed after."""
    yield
    await sync_to_async(connections.close_all)()


async def test_the_export_streams_every_row_that_the_filters_keep(thread_database: None) -> None:
    user, records = await _user_and_records()
    site = AsyncClient()
    await site.aforce_login(user)

    response = await site.get("/requests/export.csv?status=ok")

    rows = list(csv.DictReader(StringIO(await async_body(response))))
    assert response["Content-Type"].startswith("text/csv")
    assert [row["id"] for row in rows] == [str(record.pk) for record in records]
    assert rows[0]["cost"] == "0.000012"
    assert rows[0]["request_id"] == "'=evil()"


async def _user_and_records() -> tuple[User, list[UsageRecord]]:
    def make() -> tuple[User, list[UsageRecord]]:
        key = ApiKeyFactory.create()
        UsageRecordFactory.create(status="error", key=key)
        kept = UsageRecordFactory.create_batch(
            3, key=key, cost_picos=12_000_000, currency="USD", request_id="=evil()"
        )
        return UserFactory.create(), sorted(kept, key=lambda r: (r.at, r.pk), reverse=True)

    return await sync_to_async(make)()


def test_a_request_explains_its_cost_with_units(site: Client) -> None:
    price = PriceFactory.create(input_per_million="0.10", output_per_million="0.40")
    record = UsageRecordFactory.create(
        price=price,
        server=price.server,
        server_name=price.server.name,
        input_tokens=36,
        output_tokens=10,
        cost_picos=36 * 100_000 + 10 * 400_000,
        currency="USD",
        is_estimated=True,
    )

    body = site.get(f"/requests/{record.pk}/").content.decode()

    assert "36" in body
    assert "0.10 USD / 1M" in body
    assert "0.0000076" in body
    assert "estimated" in body


def test_a_request_without_a_price_says_so(site: Client) -> None:
    record = UsageRecordFactory.create()

    body = site.get(f"/requests/{record.pk}/").content.decode()

    assert "No price was known" in body


def test_an_attempt_that_failed_is_shown_with_its_error(site: Client) -> None:
    attempts = [
        {"server": "a", "model": "m", "status": "failed", "error": "no_capacity", "seconds": 0.01},
        {"server": "b", "model": "m", "status": "ok", "error": "", "seconds": 0.4},
    ]
    record = UsageRecordFactory.create(attempts=attempts)

    body = site.get(f"/requests/{record.pk}/").content.decode()

    assert "no_capacity" in body
    assert "10 ms" in body


def test_a_request_tells_which_limits_were_checked_and_why_the_target_was_chosen(
    site: Client,
) -> None:
    decision = {
        "limits": [{"limit": "rpm 60", "of": "key ci", "remaining": 59}],
        "targets": [{"target": "smollm2 on triton-a", "tier": 0, "weight": 100}],
        "chosen": {"target": "smollm2 on triton-a", "rule": "first choice, anywhere"},
    }
    record = UsageRecordFactory.create(decision=decision)

    body = site.get(f"/requests/{record.pk}/").content.decode()

    assert "rpm 60 of key ci: 59 left" in body
    assert "smollm2 on triton-a, tier 0, weight 100" in body
    assert "first choice, anywhere" in body


def test_a_decision_of_another_release_is_shown_as_it_is(site: Client) -> None:
    record = UsageRecordFactory.create(decision={"chosen": "by hand", "limits": [{"kind": "rpm"}]})

    body = site.get(f"/requests/{record.pk}/").content.decode()

    assert "by hand" in body
    assert "rpm" in body


def test_what_nobody_answered_costs_nothing_and_says_so(site: Client) -> None:
    price = PriceFactory.create(per_request="0.01")
    record = UsageRecordFactory.create(
        price=price, status="error", http_status=502, cost_picos=0, currency="USD"
    )

    body = site.get(f"/requests/{record.pk}/").content.decode()

    assert "Nobody answered" in body
    assert "price was changed" not in body


def test_an_unknown_request_is_not_found(site: Client) -> None:
    assert site.get(f"/requests/{uuid.uuid4()}/").status_code == 404


def test_lookup_tells_cost_and_target_once_the_ledger_has_it(site: Client) -> None:
    assert site.get("/requests/lookup/?request_id=abcdefgh").json() == {"found": False}
    UsageRecordFactory.create(
        request_id="abcdefgh", cost_picos=1_500_000, currency="USD", server_name="gpu-1"
    )

    found = site.get("/requests/lookup/?request_id=abcdefgh").json()

    assert (found["cost"], found["currency"], found["server"]) == ("0.0000015", "USD", "gpu-1")

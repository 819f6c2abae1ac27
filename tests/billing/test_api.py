"""REST of prices, usage records and sums."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from apps.billing.models import Price
from apps.core.models import User
from tests.factories import (
    ApiKeyFactory,
    DailyUsageFactory,
    PriceFactory,
    RouteFactory,
    ServerFactory,
    UsageRecordFactory,
)

ApiAs = Callable[[User], APIClient]


@pytest.fixture
def api(api_as: ApiAs, key_manager: User) -> APIClient:
    return api_as(key_manager)


def _price_body(server_id: int, /, **changes: Any) -> dict[str, Any]:
    body = {
        "server_id": server_id,
        "upstream_model": "llama",
        "input_per_million": "0.15",
        "output_per_million": "0.60",
    }
    return body | changes


def test_a_price_is_set_read_and_taken_back(api: APIClient) -> None:
    server = ServerFactory.create()
    tomorrow = (timezone.now() + timedelta(days=1)).isoformat()

    now = api.post("/api/v1/prices", _price_body(server.pk), format="json")
    later = api.post(
        "/api/v1/prices", _price_body(server.pk, effective_from=tomorrow), format="json"
    )

    assert (now.status_code, later.status_code) == (201, 201)
    assert now.json()["input_per_million"] == "0.150000"
    in_force = api.get("/api/v1/prices", {"is_in_force": "true"}).json()["results"]
    assert [price["id"] for price in in_force] == [now.json()["id"]]
    assert api.delete(f"/api/v1/prices/{later.json()['id']}").status_code == 204
    assert api.delete(f"/api/v1/prices/{now.json()['id']}").status_code == 409
    assert Price.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "status", "fields"),
    [
        ({"input_per_million": "-1"}, 400, ["input_per_million"]),
        ({"output_per_million": "1000001"}, 400, ["output_per_million"]),
        ({"input_per_million": "0.0000001"}, 400, ["input_per_million"]),
        ({"per_request": "Infinity"}, 400, ["per_request"]),
        ({"currency": "dollars"}, 400, ["currency"]),
        ({"upstream_model": ""}, 400, ["upstream_model"]),
        ({"effective_from": "2020-01-01T00:00:00Z"}, 400, ["effective_from"]),
        ({"price": "1"}, 400, ["price"]),
        ({"server_id": 404}, 404, []),
    ],
)
def test_bad_prices_name_the_field(
    api: APIClient, changes: dict[str, Any], status: int, fields: list[str]
) -> None:
    body = _price_body(ServerFactory.create().pk, **changes)

    response = api.post("/api/v1/prices", body, format="json")

    assert response.status_code == status, response.content
    assert list(response.json()["error"].get("fields", {})) == fields
    assert Price.objects.count() == 0


def test_a_jump_of_a_price_wants_to_be_confirmed(api: APIClient) -> None:
    old = PriceFactory.create(input_per_million="0.15", output_per_million="0.60")
    body = _price_body(old.server_id, upstream_model="upstream", input_per_million="150")

    refused = api.post("/api/v1/prices", body, format="json")
    confirmed = api.post("/api/v1/prices", body | {"allows_jump": True}, format="json")

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "price_jump")
    assert confirmed.status_code == 201


def test_a_record_tells_tokens_and_exact_cost(api: APIClient) -> None:
    record = UsageRecordFactory.create(
        input_tokens=7, output_tokens=3, cost_picos=1_300_001, currency="USD"
    )
    unpriced = UsageRecordFactory.create()

    body = api.get(f"/api/v1/usage/{record.pk}").json()

    assert (body["cost"], body["currency"]) == ("0.000001300001", "USD")
    assert (body["input_tokens"], body["key_name"]) == (7, record.key.name)
    assert api.get(f"/api/v1/usage/{unpriced.pk}").json()["cost"] is None
    assert api.get(f"/api/v1/usage/{'0' * 32}").status_code == 404


def test_records_are_narrowed(api: APIClient) -> None:
    at = datetime(2026, 12, 1, 12, tzinfo=UTC)
    route, server = RouteFactory.create(), ServerFactory.create()
    wanted = UsageRecordFactory.create(at=at, route=route, server=server, status="error")
    UsageRecordFactory.create(at=at)
    UsageRecordFactory.create(at=at + timedelta(hours=1), key=wanted.key)
    UsageRecordFactory.create(at=at - timedelta(seconds=1), key=wanted.key)

    narrowings: list[dict[str, Any]] = [
        {"route": route.pk},
        {"server": server.pk},
        {"status": "error"},
        {"key": wanted.key_id, "from": "2026-12-01T12:00:00Z", "to": "2026-12-01T13:00:00Z"},
        {"team": wanted.team_id, "from": at.isoformat(), "to": "2026-12-01T13:00:00+00:00"},
    ]
    for narrowed in narrowings:
        found = api.get("/api/v1/usage", narrowed).json()["results"]
        assert [item["id"] for item in found] == [str(wanted.pk)], narrowed


@pytest.mark.parametrize(
    "parameter", [{"from": "yesterday"}, {"status": "fine"}, {"key": "x"}, {"colour": "red"}]
)
def test_a_bad_parameter_is_named(api: APIClient, parameter: dict[str, str]) -> None:
    response = api.get("/api/v1/usage", parameter)

    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == list(parameter)


def test_turning_pages_gives_each_record_once_while_new_ones_arrive(api: APIClient) -> None:
    at = timezone.now() - timedelta(hours=1)
    key = ApiKeyFactory.create()
    records = [
        UsageRecordFactory.create(key=key, at=at - timedelta(seconds=second))
        for second in (0, 1, 2, 2, 2, 3, 4)
    ]

    seen, url = [], "/api/v1/usage?page_size=3"
    while url:
        body = api.get(url).json()
        seen += [item["id"] for item in body["results"]]
        UsageRecordFactory.create(key=key)
        url = body["next"]

    assert sorted(seen) == sorted(str(record.pk) for record in records)


@pytest.mark.parametrize("count", [3, 30])
def test_lists_cost_the_same_whatever_their_length(
    api: APIClient, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(count):
        price = PriceFactory.create()
        record = UsageRecordFactory.create(price=price, server=price.server)
        DailyUsageFactory.create(key=record.key)

    for path, queries in (("prices", 2), ("usage", 1), ("usage/daily?group_by=key", 2)):
        with django_assert_num_queries(queries):
            body = api.get(f"/api/v1/{path}").json()
        assert len(body["results"]) == count


def test_sums_are_grouped_as_asked_and_never_across_currencies(api: APIClient) -> None:
    one, other = ApiKeyFactory.create_batch(2)
    day = datetime(2026, 12, 1, tzinfo=UTC).date()
    rows = [(one, day, "USD", 10**12), (other, day, "USD", 1), (one, day, "EUR", 5),
            (one, day + timedelta(days=1), "USD", 7)]  # fmt: skip
    for key, on, currency, picos in rows:
        DailyUsageFactory.create(key=key, day=on, currency=currency, cost_picos=picos)

    by_day = api.get("/api/v1/usage/daily").json()["results"]
    by_key = api.get("/api/v1/usage/daily?group_by=key&to=2026-12-01").json()["results"]
    by_both = api.get("/api/v1/usage/daily?group_by=day,team&currency=USD").json()["results"]

    assert [(row["day"], row["currency"], row["requests"], row["cost"]) for row in by_day] == [
        ("2026-12-02", "USD", 1, "0.000000000007"),
        ("2026-12-01", "EUR", 1, "0.000000000005"),
        ("2026-12-01", "USD", 2, "1.000000000001"),
    ]
    assert [(row["key_id"], row["currency"]) for row in by_key] == [
        (one.pk, "EUR"),
        (one.pk, "USD"),
        (other.pk, "USD"),
    ]
    assert "team_id" in by_both[0]
    assert len(by_both) == 3


@pytest.mark.parametrize(
    "query", ["group_by=colour", "group_by=day,colour", "from=x", "key=404", "colour=red"]
)
def test_a_bad_question_about_sums_is_a_400(api: APIClient, query: str) -> None:
    response = api.get(f"/api/v1/usage/daily?{query}")

    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == [query.split("=")[0]]


def test_viewers_read_everything_and_write_nothing(
    api_as: ApiAs, viewer: User, operator: User
) -> None:
    price = PriceFactory.create(effective_from=timezone.now() + timedelta(days=1))

    for user in (viewer, operator):
        api = api_as(user)
        for path in ("prices", "usage", "usage/daily"):
            assert api.get(f"/api/v1/{path}").status_code == 200
        created = api.post("/api/v1/prices", _price_body(price.server_id), format="json")
        deleted = api.delete(f"/api/v1/prices/{price.pk}")
        assert (created.status_code, deleted.status_code) == (403, 403)

    assert Price.objects.count() == 1


def test_records_are_only_ever_read(api_as: ApiAs, admin: User) -> None:
    record = UsageRecordFactory.create()

    api = api_as(admin)

    for method in (api.put, api.patch, api.delete):
        assert method(f"/api/v1/usage/{record.pk}").status_code == 405
    assert api.post("/api/v1/usage", {}).status_code in {405, 415}

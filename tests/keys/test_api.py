"""REST of teams, keys, limits and budgets."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from apps.core.models import AuditEntry, User
from apps.core.secrets import digest_of
from apps.keys.models import ApiKey, Budget, Limit, Team
from tests.factories import (
    ApiKeyFactory,
    BudgetFactory,
    LimitFactory,
    RouteFactory,
    TeamFactory,
)

ApiAs = Callable[[User], APIClient]


@pytest.fixture
def api(api_as: ApiAs, key_manager: User) -> APIClient:
    return api_as(key_manager)


def test_a_key_from_team_to_revocation(api: APIClient) -> None:
    team = api.post("/api/v1/teams", {"name": "search"}, format="json").json()
    issued = api.post("/api/v1/keys", {"team_id": team["id"], "name": "backend"}, format="json")
    key = issued.json()
    url = f"/api/v1/keys/{key['id']}"

    renamed = api.patch(url, {"name": "frontend"}, format="json").json()
    rotated = api.post(f"{url}/rotate", {"grace_seconds": 60}, format="json")
    revoked = api.post(f"{url}/revoke").json()

    assert (issued.status_code, rotated.status_code) == (201, 201)
    assert issued["Cache-Control"] == "no-store"
    assert ApiKey.objects.get(pk=key["id"]).digest == digest_of(key["secret"])
    assert (renamed["name"], renamed["state"]) == ("frontend", "active")
    assert rotated.json()["rotated_from_id"] == key["id"]
    assert rotated.json()["secret"] != key["secret"]
    assert revoked["state"] == "revoked"


def test_a_secret_is_told_once(api: APIClient) -> None:
    team = TeamFactory.create()
    issued = api.post("/api/v1/keys", {"team_id": team.pk, "name": "a"}, format="json").json()

    for url in ("/api/v1/keys", f"/api/v1/keys/{issued['id']}", "/api/v1/audit"):
        text = api.get(url).content.decode()
        assert issued["secret"] not in text
        assert digest_of(issued["secret"]) not in text


def test_the_actor_of_a_change_is_who_called(api: APIClient, key_manager: User) -> None:
    api.post("/api/v1/teams", {"name": "search"}, format="json", headers={"X-Request-ID": "a" * 12})

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.request_id, entry.source_ip) == (key_manager, "a" * 12, "127.0.0.1")


BAD: list[tuple[str, dict[str, Any], int, list[str]]] = [
    ("teams", {"name": "a b"}, 400, ["name"]),
    ("teams", {"name": "../x"}, 400, ["name"]),
    ("teams", {"name": "x" * 129}, 400, ["name"]),
    ("teams", {}, 400, ["name"]),
    ("teams", {"name": "a", "budget": 5}, 400, ["budget"]),
    ("teams", {"name": "taken"}, 409, []),
    ("keys", {"team_id": 404, "name": "a"}, 404, []),
    ("keys", {"team_id": "TEAM", "name": "a", "expires_at": "2020-01-01T00:00:00Z"}, 400,
     ["expires_at"]),
    ("keys", {"team_id": "TEAM", "name": "a", "expires_at": "tomorrow"}, 400, ["expires_at"]),
    ("keys", {"team_id": "TEAM", "name": "a", "digest": "0"}, 400, ["digest"]),
    ("keys", {"team_id": "TEAM", "name": "a", "allows_all_routes": False}, 400, ["route_ids"]),
    ("keys", {"team_id": "TEAM", "name": "a", "allows_all_routes": False, "route_ids": [404]},
     400, ["route_ids"]),
    ("keys", {"team_id": 10**30, "name": "a"}, 404, []),
    ("limits", {"team_id": "TEAM", "kind": "rpm", "value": 0}, 400, ["value"]),
    ("limits", {"team_id": "TEAM", "kind": "rpm", "value": 10**30}, 400, ["value"]),
    ("limits", {"team_id": "TEAM", "kind": "rps", "value": 1}, 400, ["kind"]),
    ("limits", {"kind": "rpm", "value": 1}, 400, ["scope"]),
    ("limits", {"key_id": 404, "kind": "rpm", "value": 1}, 404, []),
    ("budgets", {"team_id": "TEAM", "period": "month", "amount": "-1"}, 400, ["amount"]),
    ("budgets", {"team_id": "TEAM", "period": "month", "amount": "1e30"}, 400, ["amount"]),
    ("budgets", {"team_id": "TEAM", "period": "month", "amount": "NaN"}, 400, ["amount"]),
    ("budgets", {"team_id": "TEAM", "period": "month", "amount": "1", "currency": "usd"}, 400,
     ["currency"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "fields"), BAD)
def test_bad_input_names_the_field_and_changes_nothing(
    api: APIClient, path: str, body: dict[str, Any], status: int, fields: list[str]
) -> None:
    team = TeamFactory.create(name="taken")
    sent = {name: team.pk if value == "TEAM" else value for name, value in body.items()}

    response = api.post(f"/api/v1/{path}", sent, format="json")

    assert response.status_code == status, response.content
    assert list(response.json()["error"].get("fields", {})) == fields
    assert response.json()["error"]["message"]
    assert (Team.objects.count(), ApiKey.objects.count()) == (1, 0)
    assert (Limit.objects.count(), Budget.objects.count()) == (0, 0)
    assert AuditEntry.objects.count() == 0


def test_malformed_json_is_a_400(api: APIClient) -> None:
    response = api.post("/api/v1/teams", b"{", content_type="application/json")

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "malformed_json"


@pytest.mark.parametrize("path", ["teams", "keys", "limits", "budgets"])
def test_an_unknown_parameter_is_named(api: APIClient, path: str) -> None:
    response = api.get(f"/api/v1/{path}", {"colour": "red"})

    assert response.status_code == 400
    assert "colour" in response.json()["error"]["fields"]


@pytest.mark.parametrize("path", ["teams", "keys", "limits", "budgets"])
@pytest.mark.parametrize("pk", [404, 10**25])
def test_what_is_not_there_is_a_404(api: APIClient, path: str, pk: int) -> None:
    response = api.get(f"/api/v1/{path}/{pk}")

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"


def test_limits_and_budgets_are_set_replaced_and_lifted(api: APIClient) -> None:
    key = ApiKeyFactory.create()

    for value in (60, 30):
        limit = api.post(
            "/api/v1/limits", {"key_id": key.pk, "kind": "rpm", "value": value}, format="json"
        ).json()
    budget = api.post(
        "/api/v1/budgets",
        {"key_id": key.pk, "period": "day", "amount": "1.50", "currency": "EUR"},
        format="json",
    ).json()

    assert (limit["key_id"], limit["team_id"], limit["value"]) == (key.pk, None, 30)
    assert (budget["amount"], budget["currency"]) == ("1.500000", "EUR")
    assert len(api.get("/api/v1/limits", {"key": key.pk}).json()["results"]) == 1
    assert api.delete(f"/api/v1/limits/{limit['id']}").status_code == 204
    assert api.delete(f"/api/v1/budgets/{budget['id']}").status_code == 204
    assert (Limit.objects.count(), Budget.objects.count()) == (0, 0)
    assert api.delete(f"/api/v1/limits/{limit['id']}").status_code == 404


def test_keys_are_found_by_state(api: APIClient) -> None:
    now = timezone.now()
    keys = {
        "active": ApiKeyFactory.create(),
        "expired": ApiKeyFactory.create(expires_at=now),
        "revoked": ApiKeyFactory.create(revoked_at=now, expires_at=now),
        "suspended": ApiKeyFactory.create(team__is_active=False),
    }

    for state, key in keys.items():
        found = api.get("/api/v1/keys", {"state": state}).json()["results"]
        assert [(item["id"], item["state"]) for item in found] == [(key.pk, state)]


@pytest.mark.parametrize("count", [3, 30])
def test_lists_cost_the_same_whatever_their_length(
    api: APIClient, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    route = RouteFactory.create()
    for key in ApiKeyFactory.create_batch(count):
        key.routes.add(route)
        LimitFactory.create(key=key)
        BudgetFactory.create(key=key)

    for path, queries in (("teams", 2), ("keys", 3), ("limits", 2), ("budgets", 2)):
        with django_assert_num_queries(queries):
            body = api.get(f"/api/v1/{path}").json()
        assert (body["count"], len(body["results"])) == (count, count)


WRITES = [
    ("post", "teams", {"name": "new"}),
    ("patch", "teams/{team}", {"note": "x"}),
    ("post", "keys", {"team_id": 1, "name": "new"}),
    ("patch", "keys/{key}", {"name": "x"}),
    ("post", "keys/{key}/rotate", {"grace_seconds": 0}),
    ("post", "keys/{key}/revoke", {}),
    ("post", "limits", {"key_id": 1, "kind": "rpm", "value": 1}),
    ("delete", "limits/{limit}", {}),
    ("post", "budgets", {"key_id": 1, "period": "day", "amount": "1"}),
    ("delete", "budgets/{budget}", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_viewers_and_operators_may_not_write(
    api_as: ApiAs,
    viewer: User,
    operator: User,
    method: str,
    path: str,
    body: dict[str, Any],
) -> None:
    key = ApiKeyFactory.create()
    limit, budget = LimitFactory.create(key=key), BudgetFactory.create(key=key)
    url = "/api/v1/" + path.format(team=key.team_id, key=key.pk, limit=limit.pk, budget=budget.pk)

    for user in (viewer, operator):
        response = getattr(api_as(user), method)(url, body, format="json")
        assert response.status_code == 403
        assert response.json()["error"]["code"] == "permission_denied"

    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("path", ["teams", "keys", "limits", "budgets"])
def test_viewers_may_read_and_strangers_may_not(api_as: ApiAs, viewer: User, path: str) -> None:
    assert api_as(viewer).get(f"/api/v1/{path}").status_code == 200
    assert APIClient().get(f"/api/v1/{path}").status_code == 401


def test_a_key_is_never_replaced_whole_or_deleted(api: APIClient) -> None:
    key = ApiKeyFactory.create()

    for method in (api.put, api.delete):
        assert method(f"/api/v1/keys/{key.pk}").status_code == 405


def test_a_budget_is_raised_lowered_and_reset(api: APIClient) -> None:
    key = ApiKeyFactory.create()
    body = {
        "key_id": key.pk,
        "period": "week",
        "amount": "10",
        "time_zone": "Europe/Berlin",
        "week_start": 6,
        "is_hard": False,
        "warn_percents": [50],
    }
    budget = api.post("/api/v1/budgets", body, format="json").json()
    url = f"/api/v1/budgets/{budget['id']}"

    wish = {"amount": "15", "until": "2100-01-01T00:00:00Z"}
    raised = api.post(f"{url}/raise", wish, format="json").json()
    ended = api.post(f"{url}/end-raise").json()
    reset = api.post(f"{url}/reset").json()

    assert budget | body == budget | {"amount": "10"}
    assert (raised["raised_amount"], ended["raised_amount"]) == ("15.000000", None)
    assert reset["reset_at"] is not None


@pytest.mark.parametrize(
    ("path", "fields", "wrong"),
    [
        ("budgets", {"amount": "1", "period": "day", "time_zone": "Mars/Olympus"}, "time_zone"),
        ("budgets", {"amount": "1", "period": "day", "warn_percents": [0]}, "warn_percents"),
        ("budgets", {"amount": "1", "period": "day", "budget": 5}, "budget"),
        ("keys", {"name": "a", "allowed_networks": ["10.0.0.1/8"]}, "allowed_networks"),
        ("keys", {"name": "a", "priority": 10}, "priority"),
        ("keys", {"name": "a", "priority": "urgent"}, "priority"),
        ("keys", {"name": "a", "data_class": "moon"}, "data_class"),
    ],
)
def test_terms_that_make_no_sense_name_the_field(
    api: APIClient, path: str, fields: dict[str, Any], wrong: str
) -> None:
    answer = api.post(f"/api/v1/{path}", {"team_id": TeamFactory.create().pk} | fields, "json")

    assert answer.status_code == 400
    assert [name.partition(".")[0] for name in answer.json()["error"]["fields"]] == [wrong]


def test_a_key_has_networks_a_data_class_and_a_priority_by_name(api: APIClient) -> None:
    terms = {"allowed_networks": ["10.0.0.0/8"], "data_class": "on_prem", "priority": "high"}
    body = {"team_id": TeamFactory.create().pk, "name": "a", **terms}

    key = api.post("/api/v1/keys", body, format="json").json()
    rotated = api.post(f"/api/v1/keys/{key['id']}/rotate", {"grace_seconds": 0}, "json").json()

    for shown in (key, rotated):
        assert {name: shown[name] for name in terms} == terms | {"priority": 8}

"""Admin pages of teams and keys."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.core.models import AuditEntry, User
from apps.core.secrets import digest_of
from apps.keys.models import ApiKey, Budget, Limit, Team
from tests.factories import ApiKeyFactory, BudgetFactory, LimitFactory, RouteFactory, TeamFactory

ConsoleAs = Callable[[User], Client]


@pytest.fixture
def client(console_as: ConsoleAs, key_manager: User) -> Client:
    return console_as(key_manager)


def _secret_in(page: Any) -> str:
    found = re.search(r'id="secret"[^>]*value="([^"]+)"', page.content.decode())
    assert found is not None, page.content.decode()[:2000]
    return found.group(1)


def _quotas(prefix: str, rows: list[dict[str, Any]], initial: int = 0) -> dict[str, Any]:
    """Fields of one inline, as the browser sends them."""
    data: dict[str, Any] = {
        f"{prefix}-TOTAL_FORMS": len(rows),
        f"{prefix}-INITIAL_FORMS": initial,
    }
    for number, row in enumerate(rows):
        data |= {f"{prefix}-{number}-{name}": value for name, value in row.items()}
    return data


def test_a_new_key_shows_its_secret_once(client: Client) -> None:
    team, route = TeamFactory.create(), RouteFactory.create()
    body = {
        "team": team.pk,
        "name": "backend",
        "routes": [route.pk],
        "allowed_networks": "10.0.0.0/8\n2001:db8::/32",
        "data_class": "on_prem",
    }

    page = client.post(reverse("admin:keys_apikey_add"), body)

    secret = _secret_in(page)
    key = ApiKey.objects.get()
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    assert key.digest == digest_of(secret)
    assert list(key.routes.all()) == [route]
    assert key.allowed_networks == ["10.0.0.0/8", "2001:db8::/32"]
    assert (key.data_class, key.priority) == ("on_prem", None)
    assert AuditEntry.objects.get().action == "key.issue"
    for url in (
        reverse("admin:keys_apikey_changelist"),
        reverse("admin:keys_apikey_change", args=[key.pk]),
        reverse("admin:keys_apikey_history", args=[key.pk]),
    ):
        assert secret not in client.get(url).content.decode()
    assert secret not in str(dict(client.session))
    again = client.post(reverse("admin:keys_apikey_add"), body)
    assert "already" in again.content.decode()
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a b"}, "no “..”"),
        ({"name": ".."}, "no “..”"),
        ({"name": ""}, "required"),
        ({"team": "404"}, "valid choice"),
        ({"routes": []}, "at least one route"),
        ({"expires_at_0": "2020-01-01", "expires_at_1": "00:00"}, "passed already"),
    ],
)
def test_a_bad_key_says_what_is_wrong(
    client: Client, changes: dict[str, Any], message: str
) -> None:
    body = {"team": TeamFactory.create().pk, "name": "a", "routes": [RouteFactory.create().pk]}

    page = client.post(reverse("admin:keys_apikey_add"), body | changes)

    assert page.status_code == 200
    assert message in page.content.decode()
    assert ApiKey.objects.count() == 0


def test_a_key_is_changed_with_its_limits_and_budgets(client: Client) -> None:
    key = ApiKeyFactory.create(name="old")
    rpm = LimitFactory.create(key=key, kind="rpm", value=1)
    tpm = LimitFactory.create(key=key, kind="tpm", value=2)
    limits = [
        {"id": rpm.pk, "key": key.pk, "kind": "concurrency", "value": 3},
        {"id": tpm.pk, "key": key.pk, "kind": "tpm", "value": 2, "DELETE": "on"},
        {"key": key.pk, "kind": "rpm", "value": 60},
    ]
    budgets = [
        {"key": key.pk, "period": "month", "amount": "10", "currency": "EUR", "week_start": 6}
    ]
    body = {"name": "new", "allows_all_routes": "on", "data_class": "any"}

    page = client.post(
        reverse("admin:keys_apikey_change", args=[key.pk]),
        body | _quotas("limit_set", limits, initial=2) | _quotas("budget_set", budgets),
    )

    key.refresh_from_db()
    assert page.status_code == 302, page.content.decode()
    assert key.name == "new"
    assert sorted(Limit.objects.values_list("kind", "value")) == [("concurrency", 3), ("rpm", 60)]
    assert list(Budget.objects.values_list("period", "currency")) == [("month", "EUR")]
    assert AuditEntry.objects.filter(action="limit.set").count() == 2


def test_two_limits_of_a_kind_are_refused(client: Client) -> None:
    team = TeamFactory.create()
    limits = [{"team": team.pk, "kind": "rpm", "value": value} for value in (1, 2)]

    page = client.post(
        reverse("admin:keys_team_change", args=[team.pk]),
        {"name": team.name, "is_active": "on", "data_class": "any", "priority": "5"}
        | _quotas("limit_set", limits)
        | _quotas("budget_set", []),
    )

    assert page.status_code == 200
    assert "may be there once" in page.content.decode()
    assert Limit.objects.count() == 0


def test_a_team_is_made_and_switched_off(client: Client) -> None:
    body = {"name": "search", "data_class": "any", "priority": "5"}
    client.post(reverse("admin:keys_team_add"), body)
    team = Team.objects.get()
    empty = _quotas("limit_set", []) | _quotas("budget_set", [])

    client.post(reverse("admin:keys_team_change", args=[team.pk]), body | empty)

    team.refresh_from_db()
    assert team.is_active is False
    actions = AuditEntry.objects.values_list("action", flat=True)
    assert list(actions) == ["team.update", "team.create"]


def test_a_key_is_rotated_on_its_own_page(client: Client) -> None:
    key = ApiKeyFactory.create()
    url = reverse("admin:keys_apikey_rotate", args=[key.pk])

    asked = client.get(url)
    page = client.post(url, {"grace_seconds": "3600"})
    again = client.post(url, {"grace_seconds": "3600"}, follow=True)

    assert "works on for" in asked.content.decode()
    assert ApiKey.objects.get(rotated_from=key).digest == digest_of(_secret_in(page))
    assert "no-store" in page["Cache-Control"]
    assert "rotated already" in again.content.decode()


def test_a_key_is_revoked_after_a_question(client: Client) -> None:
    key = ApiKeyFactory.create()
    url = reverse("admin:keys_apikey_revoke", args=[key.pk])

    asked = client.get(url)
    key.refresh_from_db()
    assert ("refused within two seconds" in asked.content.decode(), key.revoked_at) == (True, None)
    client.post(url)

    key.refresh_from_db()
    assert key.revoked_at is not None
    page = client.get(reverse("admin:keys_apikey_change", args=[key.pk])).content.decode()
    assert "Revoked" in page
    assert "_save" not in page


@pytest.mark.parametrize(
    ("action", "state"), [("revoke_chosen", "revoked"), ("expire_chosen", "expired")]
)
def test_chosen_keys_are_ended_together(client: Client, action: str, state: str) -> None:
    keys = ApiKeyFactory.create_batch(3)
    chosen = {"action": action, "_selected_action": [key.pk for key in keys[:2]]}

    client.post(reverse("admin:keys_apikey_changelist"), chosen)

    now = timezone.now()
    states = [key.state_at(now) for key in ApiKey.objects.order_by("pk")]
    assert states == [state, state, "active"]


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_a_viewer_reaches_no_action(console_as: ConsoleAs, viewer: User, action: str) -> None:
    key = ApiKeyFactory.create()

    response = console_as(viewer).post(
        reverse(f"admin:keys_apikey_{action}", args=[key.pk]), {"grace_seconds": "0"}
    )

    assert response.status_code == 302
    assert "login" in response["Location"]
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("state", ApiKey.State.values)
def test_keys_are_filtered_by_state(client: Client, state: str) -> None:
    now = timezone.now()
    ApiKeyFactory.create(name="active")
    ApiKeyFactory.create(name="expired", expires_at=now)
    ApiKeyFactory.create(name="revoked", revoked_at=now)
    ApiKeyFactory.create(name="suspended", team__is_active=False)

    page = client.get(reverse("admin:keys_apikey_changelist"), {"state": state})

    assert [key.name for key in page.context["cl"].result_list] == [state]


@pytest.mark.parametrize("count", [3, 30])
def test_lists_cost_the_same_whatever_their_length(
    client: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for key in ApiKeyFactory.create_batch(count):
        key.routes.add(RouteFactory.create())
        LimitFactory.create(key=key)
        BudgetFactory.create(key=key)
    client.get(reverse("admin:keys_apikey_changelist"))

    with django_assert_num_queries(6):
        client.get(reverse("admin:keys_apikey_changelist"))
    with django_assert_num_queries(4):
        client.get(reverse("admin:keys_team_changelist"))

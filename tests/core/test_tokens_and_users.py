"""Management tokens, the audit log over REST, and actions on people."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from apps.core import services
from apps.core.actors import SYSTEM, Actor
from apps.core.audit import audit_write
from apps.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from apps.core.models import AuditEntry, ManagementToken, User
from apps.core.roles import Role
from tests.factories import UserFactory
from tests.support.races import at_once

ApiAs = Callable[[User], APIClient]
PASSWORD = "a-long-and-rare-password"


def test_a_token_made_over_rest_opens_the_api_until_it_is_revoked(
    api_as: ApiAs, viewer: User
) -> None:
    made = api_as(viewer).post("/api/v1/tokens", {"name": "my script"}, format="json")
    client = APIClient(headers={"Authorization": f"Bearer {made.json()['secret']}"})

    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    listed = client.get("/api/v1/tokens")
    assert [item["name"] for item in listed.json()["results"]] == ["my script"]
    assert made.json()["secret"] not in listed.content.decode()
    assert client.post(f"/api/v1/tokens/{made.json()['id']}/revoke").status_code == 200
    assert client.get("/api/v1/tokens").status_code == 401


def test_nobody_sees_or_ends_the_tokens_of_others(
    api_as: ApiAs, viewer: User, operator: User
) -> None:
    token, _secret = services.token_issue(actor=SYSTEM, user=operator, name="theirs")
    api = api_as(viewer)

    assert api.get("/api/v1/tokens").json()["count"] == 0
    assert api.get(f"/api/v1/tokens/{token.pk}").status_code == 404
    assert api.post(f"/api/v1/tokens/{token.pk}/revoke").status_code == 404
    with pytest.raises(NotFoundError):
        services.token_revoke(actor=Actor(user=viewer, label="viewer"), token_id=token.pk)
    with pytest.raises(NotFoundError):
        services.token_issue(actor=Actor(user=viewer, label="viewer"), user=operator, name="x")
    assert ManagementToken.objects.get().revoked_at is None


def test_an_admin_ends_the_token_of_another(actor: Actor, viewer: User) -> None:
    token, _secret = services.token_issue(actor=SYSTEM, user=viewer, name="lost")

    for _ in range(2):
        services.token_revoke(actor=actor, token_id=token.pk)

    assert AuditEntry.objects.filter(action="token.revoke").count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a", "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"name": "a", "user": 1}, "user"),
    ],
)
def test_a_bad_token_names_the_field(
    api_as: ApiAs, viewer: User, body: dict[str, object], field: str
) -> None:
    response = api_as(viewer).post("/api/v1/tokens", body, format="json")

    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == [field]


def test_tokens_are_narrowed_to_those_in_use(api_as: ApiAs, viewer: User) -> None:
    services.token_issue(actor=SYSTEM, user=viewer, name="in-use")
    ended, _secret = services.token_issue(actor=SYSTEM, user=viewer, name="ended")
    services.token_revoke(actor=SYSTEM, token_id=ended.pk)

    found = api_as(viewer).get("/api/v1/tokens", {"is_revoked": "false"}).json()["results"]

    assert [item["name"] for item in found] == ["in-use"]


@pytest.mark.parametrize("count", [3, 30])
def test_the_audit_log_is_read_newest_first(
    api_as: ApiAs, viewer: User, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(count):
        audit_write(actor=SYSTEM, action=f"thing.{number}", target=viewer)
    api = api_as(viewer)

    with django_assert_num_queries(1):
        results = api.get("/api/v1/audit").json()["results"]

    assert [item["action"] for item in results] == [f"thing.{n}" for n in range(count)][::-1]
    one = api.get("/api/v1/audit", {"action": "thing.1", "actor": "system"}).json()["results"]
    assert [item["object_label"] for item in one] == ["viewer"]
    assert api.get("/api/v1/audit", {"to": "2020-01-01T00:00:00Z"}).json()["results"] == []


def test_the_audit_log_is_never_written_over_rest(api_as: ApiAs, admin: User) -> None:
    entry = audit_write(actor=SYSTEM, action="thing.done", target=admin)
    api = api_as(admin)

    assert api.post("/api/v1/audit", {}, format="json").status_code == 405
    assert api.delete(f"/api/v1/audit/{entry.pk}").status_code == 405
    assert APIClient().get("/api/v1/audit").status_code == 401


def test_a_person_is_made_changed_and_given_a_password(actor: Actor) -> None:
    user = services.user_create(
        actor=actor, username="ada", password=PASSWORD, role=Role.OPERATOR, full_name="Ada"
    )
    services.user_update(actor=actor, user_id=user.pk, changes={"role": Role.VIEWER})
    services.user_password_set(actor=actor, user_id=user.pk, password=PASSWORD + "2")

    user.refresh_from_db()
    assert user.role == Role.VIEWER
    assert user.check_password(PASSWORD + "2")
    entries = AuditEntry.objects.values_list("action", flat=True)
    assert list(entries) == ["user.password_set", "user.update", "user.create"]
    assert PASSWORD not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"password": "short"}, "password"),
        ({"password": "passwordpassword"[:8]}, "password"),
        ({"username": "a b"}, "username"),
        ({"username": ""}, "username"),
        ({"role": "king"}, "role"),
        ({"email": "nobody"}, "email"),
    ],
)
def test_a_person_that_makes_no_sense_names_the_field(
    actor: Actor, values: dict[str, str], field: str
) -> None:
    given = {"username": "ada", "password": PASSWORD, "role": "viewer"} | values

    with pytest.raises(InvalidRequestError) as error:
        services.user_create(actor=actor, **given)

    assert list(error.value.fields) == [field]


def test_usernames_are_taken_once(actor: Actor, viewer: User) -> None:
    with pytest.raises(ConflictError, match="of this name already"):
        services.user_create(actor=actor, username="viewer", password=PASSWORD, role="viewer")


def test_the_last_admin_stays(actor: Actor, admin: User) -> None:
    changes: list[services.UserChanges] = [{"role": "viewer"}, {"is_active": False}]

    for change in changes:
        with pytest.raises(ConflictError, match="nobody would be left"):
            services.user_update(actor=actor, user_id=admin.pk, changes=change)

    admin.refresh_from_db()
    assert (admin.role, admin.is_active) == (Role.ADMIN, True)


@pytest.mark.django_db(transaction=True)
def test_two_admins_cannot_demote_each_other_at_once() -> None:
    one, other = UserFactory.create_batch(2, role=Role.ADMIN)
    demote = partial(services.user_update, actor=SYSTEM, changes={"role": "viewer"})

    results = at_once([partial(demote, user_id=one.pk), partial(demote, user_id=other.pk)])

    assert sum(isinstance(result, ConflictError) for result in results) == 1
    assert User.objects.filter(role=Role.ADMIN).count() == 1


def test_only_admins_act_on_people(viewer: User, operator: User, key_manager: User) -> None:
    for user in (viewer, operator, key_manager):
        actor = Actor(user=user, label=user.username)
        actions: list[Callable[..., object]] = [
            partial(services.user_create, username="a", password=PASSWORD, role="admin"),
            partial(services.user_update, user_id=user.pk, changes={"role": "admin"}),
            partial(services.user_password_set, user_id=viewer.pk, password=PASSWORD),
        ]
        for action in actions:
            with pytest.raises(PermissionDeniedError):
                action(actor=actor)


def test_a_token_of_a_person_switched_off_opens_nothing(actor: Actor, viewer: User) -> None:
    later = timezone.now() + timedelta(days=1)
    _token, secret = services.token_issue(actor=SYSTEM, user=viewer, name="tests", expires_at=later)
    client = APIClient(headers={"Authorization": f"Bearer {secret}"})
    assert client.get("/api/v1/tokens").status_code == 200

    services.user_update(actor=actor, user_id=viewer.pk, changes={"is_active": False})

    assert client.get("/api/v1/tokens").status_code == 401

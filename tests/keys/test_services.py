"""Teams and keys: issuing, changing, rotating, ending."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from apps.core.actors import SYSTEM, Actor
from apps.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from apps.core.models import AuditEntry, User
from apps.core.redis import connection
from apps.core.secrets import digest_of
from apps.keys import services
from apps.keys.models import ApiKey, Budget, Limit, Team
from tests.factories import ApiKeyFactory, BudgetFactory, LimitFactory, RouteFactory, TeamFactory
from tests.support.races import at_once


def test_a_key_is_kept_as_its_digest_only(actor: Actor) -> None:
    team = TeamFactory.create()

    key, secret = services.key_issue(actor=actor, team_id=team.pk, name="search")

    assert secret.startswith("sk-ia-")
    assert key.digest == digest_of(secret)
    assert secret.startswith(key.prefix)
    assert secret not in str(ApiKey.objects.values().get())


def test_what_is_done_to_a_key_is_audited_without_its_secret(actor: Actor) -> None:
    team = TeamFactory.create(name="search")

    _key, secret = services.key_issue(actor=actor, team_id=team.pk, name="backend")

    entry = AuditEntry.objects.get(action="key.issue")
    assert (entry.actor_label, entry.after["team"]) == (actor.label, "search")
    assert secret not in str(entry.after)


def test_issuing_tells_the_gateway(
    actor: Actor,
    empty_redis: None,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    team = TeamFactory.create()

    with django_capture_on_commit_callbacks(execute=True):
        services.key_issue(actor=actor, team_id=team.pk, name="search")

    assert connection().get("inferadmin.version.keys") == b"1"


@pytest.mark.parametrize("name", ["", "a b", "../etc", "a..b", "a/b", "x" * 129, "naïve"])
def test_a_name_that_is_not_safe_is_refused(actor: Actor, name: str) -> None:
    team = TeamFactory.create()

    with pytest.raises(InvalidRequestError) as key_error:
        services.key_issue(actor=actor, team_id=team.pk, name=name)
    with pytest.raises(InvalidRequestError) as team_error:
        services.team_create(actor=actor, name=name)

    assert list(key_error.value.fields) == list(team_error.value.fields) == ["name"]


def test_names_are_taken_once(actor: Actor) -> None:
    team = services.team_create(actor=actor, name="search")
    key, _secret = services.key_issue(actor=actor, team_id=team.pk, name="backend")

    with pytest.raises(ConflictError, match="of this name already"):
        services.team_create(actor=actor, name="search")
    with pytest.raises(ConflictError, match="has a key named backend already"):
        services.key_issue(actor=actor, team_id=team.pk, name="backend")
    services.key_revoke(actor=actor, key_id=key.pk)
    services.key_issue(actor=actor, team_id=team.pk, name="backend")


def test_a_key_needs_a_team_that_exists_and_is_active(actor: Actor) -> None:
    asleep = TeamFactory.create(is_active=False)

    with pytest.raises(NotFoundError, match="there is no team 404"):
        services.key_issue(actor=actor, team_id=404, name="a")
    with pytest.raises(ConflictError, match="switched off"):
        services.key_issue(actor=actor, team_id=asleep.pk, name="a")


def test_a_key_does_not_begin_expired(actor: Actor) -> None:
    team = TeamFactory.create()

    with pytest.raises(InvalidRequestError, match="passed already"):
        services.key_issue(actor=actor, team_id=team.pk, name="a", expires_at=timezone.now())


def test_routes_and_the_permission_for_all_must_fit(actor: Actor) -> None:
    team, route = TeamFactory.create(), RouteFactory.create()
    issue = partial(services.key_issue, actor=actor, team_id=team.pk, name="a")

    with pytest.raises(InvalidRequestError, match="leave it empty"):
        issue(route_ids=[route.pk])
    with pytest.raises(InvalidRequestError, match="at least one route"):
        issue(allows_all_routes=False)
    with pytest.raises(InvalidRequestError, match="no route 404, 405"):
        issue(allows_all_routes=False, route_ids=[route.pk, 405, 404])
    key, _secret = issue(allows_all_routes=False, route_ids=[route.pk])

    assert list(key.routes.all()) == [route]
    assert ApiKey.objects.count() == 1


def test_a_change_touches_only_what_it_names(actor: Actor) -> None:
    route = RouteFactory.create()
    key = ApiKeyFactory.create(name="old")

    services.key_update(actor=actor, key_id=key.pk, changes={"name": "new"})
    services.key_update(
        actor=actor,
        key_id=key.pk,
        changes={"allows_all_routes": False, "route_ids": [route.pk]},
    )

    key.refresh_from_db()
    assert (key.name, key.allows_all_routes, list(key.routes.all())) == ("new", False, [route])
    assert AuditEntry.objects.filter(action="key.update").count() == 2


def test_allowing_all_routes_drops_the_list(actor: Actor) -> None:
    key = ApiKeyFactory.create(allows_all_routes=False)
    key.routes.add(RouteFactory.create())

    services.key_update(actor=actor, key_id=key.pk, changes={"allows_all_routes": True})

    assert key.routes.count() == 0


def test_rotation_carries_all_that_the_key_was_good_for(actor: Actor) -> None:
    old = ApiKeyFactory.create(allows_all_routes=False)
    old.routes.add(RouteFactory.create())
    LimitFactory.create(key=old, value=7)
    BudgetFactory.create(key=old, amount=3)

    new, secret = services.key_rotate(actor=actor, key_id=old.pk, grace_seconds=3600)

    old.refresh_from_db()
    assert (new.name, new.team, list(new.routes.all())) == (
        old.name,
        old.team,
        list(old.routes.all()),
    )
    assert Limit.objects.get(key=new).value == 7
    assert Budget.objects.get(key=new).amount == 3
    assert new.digest == digest_of(secret) != old.digest
    assert old.expires_at is not None
    assert 3590 < (old.expires_at - timezone.now()).total_seconds() <= 3600


def test_grace_never_prolongs_a_key(actor: Actor) -> None:
    end = timezone.now() + timedelta(minutes=5)
    old = ApiKeyFactory.create(expires_at=end)

    new, _secret = services.key_rotate(actor=actor, key_id=old.pk, grace_seconds=86400)

    old.refresh_from_db()
    assert old.expires_at == new.expires_at == end


def test_without_grace_the_old_key_ends_at_once(actor: Actor) -> None:
    old = ApiKeyFactory.create()

    services.key_rotate(actor=actor, key_id=old.pk, grace_seconds=0)

    old.refresh_from_db()
    assert old.state_at(timezone.now()) == ApiKey.State.REVOKED


@pytest.mark.parametrize("grace_seconds", [-1, 90 * 86400 + 1, 10**30])
def test_grace_has_bounds(actor: Actor, grace_seconds: int) -> None:
    key = ApiKeyFactory.create()

    with pytest.raises(InvalidRequestError, match="grace_seconds"):
        services.key_rotate(actor=actor, key_id=key.pk, grace_seconds=grace_seconds)


def test_only_a_key_in_use_is_rotated_and_only_once(actor: Actor) -> None:
    revoked = ApiKeyFactory.create(revoked_at=timezone.now())
    expired = ApiKeyFactory.create(expires_at=timezone.now())
    rotated = ApiKeyFactory.create()
    services.key_rotate(actor=actor, key_id=rotated.pk, grace_seconds=60)

    for key, reason in [(revoked, "revoked"), (expired, "expired"), (rotated, "already")]:
        with pytest.raises(ConflictError, match=reason):
            services.key_rotate(actor=actor, key_id=key.pk, grace_seconds=60)


def test_revoking_twice_is_one_act(actor: Actor) -> None:
    key = ApiKeyFactory.create()

    first = services.key_revoke(actor=actor, key_id=key.pk)
    second = services.key_revoke(actor=actor, key_id=key.pk)

    assert first.revoked_at == second.revoked_at
    assert AuditEntry.objects.filter(action="key.revoke").count() == 1
    with pytest.raises(ConflictError, match="revoked"):
        services.key_update(actor=actor, key_id=key.pk, changes={"name": "again"})


def test_an_expired_key_can_be_prolonged(actor: Actor) -> None:
    key = services.key_expire(actor=actor, key_id=ApiKeyFactory.create().pk)
    assert key.state_at(timezone.now()) == ApiKey.State.EXPIRED

    later = timezone.now() + timedelta(days=1)
    key = services.key_update(actor=actor, key_id=key.pk, changes={"expires_at": later})

    assert key.state_at(timezone.now()) == ApiKey.State.ACTIVE


def test_a_team_switched_off_suspends_its_keys(actor: Actor) -> None:
    key = ApiKeyFactory.create()

    services.team_update(actor=actor, team_id=key.team_id, changes={"is_active": False})

    key.refresh_from_db()
    assert key.state_at(timezone.now()) == ApiKey.State.SUSPENDED
    entry = AuditEntry.objects.get(action="team.update")
    assert (entry.before, entry.after) == ({"is_active": True}, {"is_active": False})


def test_the_playground_key_lasts_an_hour_for_who_may_operate(operator: User) -> None:
    actor = Actor(user=operator, label=operator.username)

    secrets = {services.playground_key_issue(actor=actor) for _ in range(2)}

    keys = ApiKey.objects.filter(team__name="playground", created_by=operator)
    assert {key.digest for key in keys} == {digest_of(secret) for secret in secrets}
    assert all(
        key.expires_at and key.expires_at <= timezone.now() + timedelta(hours=1) for key in keys
    )


def test_the_playground_is_not_for_viewers_nor_for_the_system(viewer: User) -> None:
    for actor in (Actor(user=viewer, label="viewer"), SYSTEM):
        with pytest.raises(PermissionDeniedError):
            services.playground_key_issue(actor=actor)

    assert ApiKey.objects.count() == 0


def test_a_viewer_may_change_nothing(viewer: User) -> None:
    actor, key = Actor(user=viewer, label="viewer"), ApiKeyFactory.create()
    actions: list[Callable[..., object]] = [
        partial(services.team_create, name="a"),
        partial(services.team_update, team_id=key.team_id, changes={"note": "x"}),
        partial(services.key_issue, team_id=key.team_id, name="a"),
        partial(services.key_update, key_id=key.pk, changes={"name": "x"}),
        partial(services.key_rotate, key_id=key.pk, grace_seconds=0),
        partial(services.key_revoke, key_id=key.pk),
        partial(services.key_expire, key_id=key.pk),
    ]

    for action in actions:
        with pytest.raises(PermissionDeniedError):
            action(actor=actor)

    assert AuditEntry.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_of_two_who_take_a_name_at_once_one_gets_it() -> None:
    team = TeamFactory.create()

    teams = at_once([partial(services.team_create, actor=SYSTEM, name="same")] * 4)
    keys = at_once([partial(services.key_issue, actor=SYSTEM, team_id=team.pk, name="a")] * 4)

    for results in (teams, keys):
        assert sum(isinstance(result, ConflictError) for result in results) == 3
    assert (Team.objects.filter(name="same").count(), ApiKey.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_a_key_rotated_and_revoked_at_once_is_never_rotated_twice() -> None:
    key = ApiKeyFactory.create()
    rotate = partial(services.key_rotate, actor=SYSTEM, key_id=key.pk, grace_seconds=60)
    revoke = partial(services.key_revoke, actor=SYSTEM, key_id=key.pk)

    results = at_once([rotate, revoke, rotate, revoke])

    key.refresh_from_db()
    rotations = ApiKey.objects.filter(rotated_from=key).count()
    assert key.revoked_at is not None
    assert rotations == sum(isinstance(results[i], tuple) for i in (0, 2)) <= 1
    assert AuditEntry.objects.filter(action="key.revoke").count() == 1


@pytest.mark.django_db(transaction=True)
def test_playground_keys_of_one_moment_share_the_new_team() -> None:
    user = User.objects.create_user("op", None, role="operator")
    actor = Actor(user=user, label="op")

    results = at_once([partial(services.playground_key_issue, actor=actor)] * 4)

    assert len({str(result) for result in results}) == 4
    assert Team.objects.get().keys.count() == 4

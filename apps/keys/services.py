"""Actions on teams and keys; those on limits and budgets are in `quotas`.

Locks are taken in the order team, key, so that two actions never wait for each other in a circle.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, TypedDict, Unpack

from django.db import models, transaction
from django.utils import timezone

from apps.core import live
from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.changes import announce_on_commit
from apps.core.errors import ConflictError, InvalidRequestError, PermissionDeniedError
from apps.core.roles import Permission
from apps.core.rows import row_assign, row_insert, row_locked, row_update
from apps.core.secrets import NewSecret, new_secret
from apps.keys.models import ApiKey, Team
from apps.keys.quotas import quotas_copy
from apps.routes.models import Route

KEY_KIND = "sk-ia-"  # the visible start of every key
MAX_GRACE_SECONDS = 90 * 86400
PLAYGROUND_TEAM = "playground"
PLAYGROUND_KEY_SECONDS = 3600


class TeamChanges(TypedDict, total=False):
    """What `team_update` may change; what is left out stays."""

    name: str
    note: str
    is_active: bool
    data_class: str
    priority: int


class TeamOptions(TypedDict, total=False):
    """Further terms of a new team; what is left out is the model's default."""

    note: str
    data_class: str
    priority: int


class KeyChanges(TypedDict, total=False):
    """What `key_update` may change; what is left out stays."""

    name: str
    expires_at: datetime | None
    allows_all_routes: bool
    route_ids: Collection[int]
    allowed_networks: list[str]
    data_class: str
    priority: int | None


class KeyOptions(TypedDict, total=False):
    """Further terms of a new key; what is left out is the model's default."""

    allowed_networks: list[str]
    data_class: str
    priority: int | None


# Teams


@transaction.atomic
def team_create(*, actor: Actor, name: str, **options: Unpack[TeamOptions]) -> Team:
    """New active team; raises ConflictError when the name is taken."""
    actor.require(Permission.MANAGE_KEYS)
    team = Team(name=name, **options)
    row_insert(team)
    after = {"name": name, "note": team.note, **options}
    audit_write(actor=actor, action="team.create", target=team, after=after)
    _announce_keys("team", team.pk)
    return team


@transaction.atomic
def team_update(*, actor: Actor, team_id: int, changes: TeamChanges) -> Team:
    """Change a team; switched to inactive, its keys are refused within two seconds."""
    actor.require(Permission.MANAGE_KEYS)
    team = row_locked(Team, team_id)
    before = row_assign(team, changes)
    if before:
        row_update(team, list(before))
        _audit_change(actor, "team.update", team, before)
        _announce_keys("team", team.pk)
    return team


# Keys


@transaction.atomic
def key_issue(
    *,
    actor: Actor,
    team_id: int,
    name: str,
    expires_at: datetime | None = None,
    allows_all_routes: bool = True,
    route_ids: Collection[int] = (),
    **options: Unpack[KeyOptions],
) -> tuple[ApiKey, str]:
    """New key and its secret, which exists only in this answer.

    Raises NotFoundError for the team, ConflictError when the team is inactive or has a key of the
    name, InvalidRequestError for a moment in the past or routes that do not fit.
    """
    actor.require(Permission.MANAGE_KEYS)
    team = row_locked(Team, team_id)
    _require_active(team)
    _require_free_name(team, name)
    _require_future(expires_at)
    key, secret = _new_key(actor, team, name, expires_at, allows_all_routes)
    row_assign(key, options)
    row_insert(key)
    key.routes.set(_routes(allows_all_routes, route_ids))
    audit_write(actor=actor, action="key.issue", target=key, after=_facts(key))
    _announce_keys("key", key.pk)
    return key, secret.value


@transaction.atomic
def key_update(*, actor: Actor, key_id: int, changes: KeyChanges) -> ApiKey:
    """Change name, end or routes of a key that is not revoked."""
    actor.require(Permission.MANAGE_KEYS)
    key = _key_locked(key_id)
    if key.revoked_at is not None:
        raise ConflictError(f"the key {key.name} is revoked; issue a new one")
    if changes.get("name", key.name) != key.name:
        _require_free_name(key.team, changes["name"])
    if changes.get("expires_at", key.expires_at) != key.expires_at:
        _require_future(changes["expires_at"])
    before = _facts(key)
    values: dict[str, Any] = {**changes}
    route_ids = values.pop("route_ids", None)
    fields = list(row_assign(key, values))
    if fields:
        row_update(key, fields)
    if route_ids is not None or "allows_all_routes" in fields:
        key.routes.set(_routes(key.allows_all_routes, route_ids or ()))
    if _facts(key) != before:
        audit_write(actor=actor, action="key.update", target=key, before=before, after=_facts(key))
        _announce_keys("key", key.pk)
    return key


@transaction.atomic
def key_rotate(*, actor: Actor, key_id: int, grace_seconds: int) -> tuple[ApiKey, str]:
    """New key in place of an old one, and its secret, which exists only in this answer.

    The new key has the same name, end, routes, networks, limits and budgets. The old one works for
    `grace_seconds` more (up to 90 days), with 0 not at all. Raises ConflictError when the old key
    is revoked, expired, or has been rotated already.
    """
    actor.require(Permission.MANAGE_KEYS)
    if not 0 <= grace_seconds <= MAX_GRACE_SECONDS:
        raise InvalidRequestError.of(
            "grace_seconds", f"give a number from 0 to {MAX_GRACE_SECONDS}"
        )
    old = _key_locked(key_id)
    _require_rotatable(old)
    key, secret = _new_key(actor, old.team, old.name, old.expires_at, old.allows_all_routes)
    key.rotated_from = old
    row_assign(key, {name: getattr(old, name) for name in KeyOptions.__annotations__})
    row_insert(key)
    key.routes.set(old.routes.all())
    quotas_copy(old, key)
    _phase_out(old, grace_seconds)
    audit_write(
        actor=actor,
        action="key.rotate",
        target=old,
        after={"grace_seconds": grace_seconds, "new_key": key.pk, "new_prefix": key.prefix},
    )
    audit_write(actor=actor, action="key.issue", target=key, after=_facts(key))
    _announce_keys("key", old.pk, key.pk)
    announce_on_commit("config")
    return key, secret.value


@transaction.atomic
def key_revoke(*, actor: Actor, key_id: int) -> ApiKey:
    """End a key: every worker refuses it within two seconds. Safe to run twice."""
    actor.require(Permission.MANAGE_KEYS)
    key = _key_locked(key_id)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        audit_write(actor=actor, action="key.revoke", target=key)
        _announce_keys("key", key.pk)
    return key


@transaction.atomic
def key_expire(*, actor: Actor, key_id: int) -> ApiKey:
    """Let a key end now, unless it has ended already; unlike a revoked one it can be prolonged."""
    actor.require(Permission.MANAGE_KEYS)
    key = _key_locked(key_id)
    now = timezone.now()
    if key.state_at(now) in {ApiKey.State.ACTIVE, ApiKey.State.SUSPENDED}:
        key.expires_at = now
        key.save(update_fields=["expires_at"])
        audit_write(actor=actor, action="key.expire", target=key)
        _announce_keys("key", key.pk)
    return key


@transaction.atomic
def playground_key_issue(*, actor: Actor) -> str:
    """Secret of a key with which one person tries models for an hour; its row stays, for the bill.

    Raises PermissionDeniedError without OPERATE, ConflictError when its team is switched off.
    """
    if actor.user is None:
        raise PermissionDeniedError("the playground is for people; issue a key instead")
    actor.require(Permission.OPERATE)
    team, _is_new = Team.objects.get_or_create(name=PLAYGROUND_TEAM)
    _require_active(team)
    expires_at = timezone.now() + timedelta(seconds=PLAYGROUND_KEY_SECONDS)
    key, secret = _new_key(actor, team, "", expires_at, allows_all_routes=True)
    key.name = f"person-{actor.user.pk}-{token_hex(4)}"
    row_insert(key)
    audit_write(actor=actor, action="key.issue", target=key, after=_facts(key))
    _announce_keys("key", key.pk)
    return secret.value


def _key_locked(key_id: int) -> ApiKey:
    """The key with its team loaded, both locked, the team first."""
    team_id = ApiKey.objects.filter(pk=key_id).values_list("team_id", flat=True).first()
    team = row_locked(Team, team_id) if team_id is not None else None
    key = row_locked(ApiKey, key_id)
    if team is not None:
        key.team = team
    return key


def _require_active(team: Team) -> None:
    if not team.is_active:
        raise ConflictError(f"the team {team.name} is switched off")


def _require_free_name(team: Team, name: str) -> None:
    """The team's row is locked, so nobody takes the name in between."""
    if team.keys.filter(name=name, revoked_at=None).exists():
        raise ConflictError(f"the team {team.name} has a key named {name} already")


def _require_future(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidRequestError.of("expires_at", "this moment has passed already")


def _require_rotatable(key: ApiKey) -> None:
    state = key.state_at(timezone.now())
    if state in {ApiKey.State.REVOKED, ApiKey.State.EXPIRED}:
        raise ConflictError(f"the key {key.name} is {state}; issue a new one")
    if ApiKey.objects.filter(rotated_from=key).exists():
        raise ConflictError(f"the key {key.name} was rotated already; rotate its successor")


def _new_key(
    actor: Actor, team: Team, name: str, expires_at: datetime | None, allows_all_routes: bool
) -> tuple[ApiKey, NewSecret]:
    """Unsaved key and its secret."""
    secret = new_secret(KEY_KIND)
    key = ApiKey(
        team=team,
        name=name,
        prefix=secret.prefix,
        digest=secret.digest,
        expires_at=expires_at,
        allows_all_routes=allows_all_routes,
        created_by=actor.user,
    )
    return key, secret


def _routes(allows_all_routes: bool, route_ids: Collection[int]) -> list[Route]:
    """The routes a key may call, none for all; raises InvalidRequestError where they do not fit."""
    if allows_all_routes and route_ids:
        raise InvalidRequestError.of(
            "route_ids", "leave it empty, or set allows_all_routes to false"
        )
    if not allows_all_routes and not route_ids:
        raise InvalidRequestError.of(
            "route_ids", "name at least one route, or set allows_all_routes to true"
        )
    routes = list(Route.objects.filter(pk__in=route_ids))
    missing = sorted(set(route_ids) - {route.pk for route in routes})
    if missing:
        raise InvalidRequestError.of(
            "route_ids", f"there is no route {', '.join(map(str, missing))}"
        )
    return routes


def _phase_out(key: ApiKey, grace_seconds: int) -> None:
    """Let a replaced key end with its grace, or earlier where its own end is nearer."""
    now = timezone.now()
    if grace_seconds == 0:
        key.revoked_at = now
    end = now + timedelta(seconds=grace_seconds)
    key.expires_at = min(end, key.expires_at or end)
    key.save(update_fields=["revoked_at", "expires_at"])


def _audit_change(
    actor: Actor, action: str, row: models.Model, before: Mapping[str, object]
) -> None:
    after = {name: getattr(row, name) for name in before}
    audit_write(actor=actor, action=action, target=row, before=before, after=after)


def _facts(key: ApiKey) -> dict[str, object]:
    """What an audit entry tells of a key."""
    return {
        "team": key.team.name,
        "name": key.name,
        "expires_at": key.expires_at,
        "allows_all_routes": key.allows_all_routes,
        "routes": sorted(route.name for route in key.routes.all()),
        **{name: getattr(key, name) for name in KeyOptions.__annotations__},
    }


def _announce_keys(kind: str, *pks: int) -> None:
    for pk in pks:
        live.changed_on_commit(kind, pk)
    announce_on_commit("keys")

"""Actions on routes: a route and its targets change together or not at all."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from django.db import transaction

from apps.core import live
from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.changes import announce_on_commit
from apps.core.errors import InvalidRequestError
from apps.core.roles import Permission
from apps.core.rows import row_assign, row_insert, row_locked, row_update
from apps.routes.models import Route, Target
from apps.routes.targets import target_identity, targets_checked

_TIMEOUTS = (
    "connect_timeout_seconds",
    "first_byte_timeout_seconds",
    "idle_timeout_seconds",
    "total_timeout_seconds",
)
_POLICY_FIELDS = (
    "name", "description", "is_enabled", "data_class", *_TIMEOUTS, "default_max_tokens",
    "max_attempts", "wait_seconds", "max_waiting",
)  # fmt: skip
_TARGET_FIELDS = ("protocol", "tier", "weight", "is_enabled", "max_in_flight")


class RoutePolicy(TypedDict, total=False):
    """What a route says beside its name and targets; timeouts `None`: the installation's."""

    description: str
    is_enabled: bool
    data_class: str
    connect_timeout_seconds: int | None
    first_byte_timeout_seconds: int | None
    idle_timeout_seconds: int | None
    total_timeout_seconds: int | None
    default_max_tokens: int
    max_attempts: int
    wait_seconds: int
    max_waiting: int


class RouteChanges(RoutePolicy, total=False):
    """What `route_update` may change; what is left out stays. `targets` replaces all of them."""

    name: str
    targets: Sequence[Mapping[str, Any]]


@transaction.atomic
def route_create(
    *, actor: Actor, name: str, targets: Sequence[Mapping[str, Any]], **policy: Unpack[RoutePolicy]
) -> Route:
    """New route with its targets (see `targets.TargetValues`); clients can use it within 2 s.

    Raises InvalidRequestError with `fields` (`targets.0.weight`), ConflictError for a name that
    is taken.
    """
    actor.require(Permission.OPERATE)
    route = Route(name=name, **policy)
    _require_timeouts(route)
    wanted = targets_checked(route, targets)
    row_insert(route)
    Target.objects.bulk_create(wanted)
    audit_write(actor=actor, action="route.create", target=route, after=_facts(route))
    _changed(route)
    return route


@transaction.atomic
def route_update(*, actor: Actor, route_id: int, **changes: Unpack[RouteChanges]) -> Route:
    """Change a route, its targets, or both; raises as `route_create` does.

    A target that stays (same server, model and version) keeps its id.
    """
    actor.require(Permission.OPERATE)
    route = row_locked(Route, route_id)
    before = _facts(route)
    values: dict[str, Any] = {**changes}
    targets = values.pop("targets", None)
    fields = list(row_assign(route, values))
    _require_timeouts(route)
    _check_targets(route, targets, fields)
    if fields or targets is not None:
        row_update(route, [*fields, "updated_at"])
    _audit_change(actor, route, before)
    return route


@transaction.atomic
def route_delete(*, actor: Actor, route_id: int) -> None:
    """Delete a route; its clients are told within two seconds that there is no such model."""
    actor.require(Permission.OPERATE)
    route = row_locked(Route, route_id)
    audit_write(actor=actor, action="route.delete", target=route, before=_facts(route))
    _changed(route)
    route.delete()


def _check_targets(
    route: Route, targets: Sequence[Mapping[str, Any]] | None, fields: list[str]
) -> None:
    """Replace the targets; without new ones, check that the old ones fit a new data class."""
    if targets is not None:
        _replace_targets(route, targets_checked(route, targets))
    elif "data_class" in fields:
        targets_checked(route, [_values(target) for target in route.targets.all()])


def _replace_targets(route: Route, wanted: list[Target]) -> None:
    old = {target_identity(target): target.pk for target in route.targets.all()}
    kept = [target for target in wanted if target_identity(target) in old]
    new = [target for target in wanted if target_identity(target) not in old]
    for target in kept:
        target.pk = old.pop(target_identity(target))
    Target.objects.filter(pk__in=old.values()).delete()
    Target.objects.bulk_create(new)
    Target.objects.bulk_update(kept, _TARGET_FIELDS)


def _require_timeouts(route: Route) -> None:
    problems = {
        name: ["use 1 second or more, or leave it empty"]
        for name in _TIMEOUTS
        if getattr(route, name) == 0
    }
    if problems:
        text = "; ".join(f"{name}: {texts[0]}" for name, texts in problems.items())
        raise InvalidRequestError(text, fields=problems)


def _values(target: Target) -> dict[str, Any]:
    names = ("server_id", "upstream_model", "version", *_TARGET_FIELDS)
    return {name: getattr(target, name) for name in names}


def _facts(route: Route) -> dict[str, object]:
    """What the audit shows: policy, and one line a target."""
    facts: dict[str, object] = {name: getattr(route, name) for name in _POLICY_FIELDS}
    lines = [
        f"tier {target.tier}, weight {target.weight}: {target} ({target.protocol})"
        f"{'' if target.is_enabled else ', disabled'}"
        f"{'' if target.max_in_flight is None else f', {target.max_in_flight} at once'}"
        for target in route.targets.select_related("server").order_by("tier", "-weight", "id")
    ]
    return {**facts, "targets": lines}


def _audit_change(actor: Actor, route: Route, before: dict[str, object]) -> None:
    after = _facts(route)
    changed = [name for name in after if after[name] != before[name]]
    if not changed:
        return
    audit_write(
        actor=actor,
        action="route.update",
        target=route,
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
    )
    _changed(route)


def _changed(route: Route) -> None:
    live.changed_on_commit("route", route.pk)
    announce_on_commit("config")

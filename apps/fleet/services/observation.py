"""Looking at the servers and writing down what is new.

Most looks find what is known already: they cost one read for all servers and one write of when
they were seen. Locks are taken in the order server, placement, operation.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.catalog import services as catalog
from apps.core import live
from apps.core.actors import SYSTEM
from apps.core.audit import audit_write
from apps.core.changes import announce_on_commit
from apps.core.errors import ConflictError
from apps.core.rows import row_assign
from apps.fleet.looks import look_at_servers
from apps.fleet.models import Operation, Placement, Server
from apps.fleet.services import operations
from apps.fleet.sightings import LOADING, READY, ModelSeen, ServerSeen, observed_of

log = structlog.get_logger(__name__)

# How often a server is looked at; a paid API is not ours to poll.
LOOK_EVERY = timedelta(seconds=2)
LOOK_AT_ENGINES_EVERY = timedelta(seconds=10)
LOOK_AT_EXTERNAL_EVERY = timedelta(seconds=60)
# Beat is not exact; a look that is due within this time is taken now.
_EARLY = timedelta(seconds=0.5)
# One lost answer is no outage: a load over HTTP makes Triton's HTTP threads deaf for moments.
FAILED_LOOKS_ALLOWED = 2
# A version in one of these states was asked for; a process that has forgotten it is a new one.
_ASKED_FOR = {READY, LOADING}

_OBSERVED_COLUMNS = ("observed", "versions", "reason")

Observed = Placement.Observed
Models = Mapping[str, ModelSeen]


class _Known(NamedTuple):
    """A placement as it is kept; ten thousand rows of the model's class would cost much more."""

    name: str
    desired: str
    observed: str
    versions: list[dict[str, Any]]
    reason: str


def servers_observe() -> None:
    """Look at every enabled server that is due, all at once, and write what is new.

    Safe to run twice at a time: each look is taken by one of the two.
    """
    servers = _claim(timezone.now())
    if not servers:
        return
    seen = asyncio.run(look_at_servers(servers))
    _mark_seen(seen)
    known = _known_of(servers)
    for server, sighting in zip(servers, seen, strict=True):
        if _is_news(server, known[server.pk], sighting):
            server_observe(sighting, looked_at=server.looked_at)


@transaction.atomic
def server_observe(seen: ServerSeen, *, looked_at: datetime | None) -> None:
    """Write down what a look that began at `looked_at` has found.

    Does nothing when another look has begun since, or the server is gone. New models of the
    repository become unmanaged placements. A server that was restarted gets what it should have
    loaded as new operations.
    """
    server = Server.objects.select_for_update(no_key=True).filter(pk=seen.server_id).first()
    if server is None or server.looked_at != looked_at:
        return
    placements = _placements_locked(server)
    if seen.failure:
        _lose_sight(server, placements, seen)
        return
    now = timezone.now()
    if seen.models is not None:
        has_restarted = _has_restarted(placements, seen.models)
        placements += _discover(server, placements, seen.models)
        for placement in placements:
            placement_see(placement, seen.models.get(placement.model.name), now)
        if has_restarted:
            _restore(server, placements)
    _write_server(server, _server_facts(server, hung_loads(placements), seen, now))


def placement_see(placement: Placement, model: ModelSeen | None, now: datetime) -> None:
    """Write what was seen of a placement that the caller has locked; nothing when it is known."""
    ready_before = placement.ready_versions
    facts = _model_facts(placement.desired, placement.observed, model)
    before = row_assign(placement, dict(zip(_OBSERVED_COLUMNS, facts, strict=True)))
    if not before:
        return
    placement.observed_at = now
    if "observed" in before:
        placement.since = now
    placement.save(update_fields=[*before, "observed_at", "since"])
    catalog.versions_discover(
        [(placement.model_id, version["number"]) for version in placement.versions]
    )
    live.changed_on_commit("placement", placement.pk, server_id=placement.server_id)
    if placement.ready_versions != ready_before:
        announce_on_commit("config")


def placement_stall(placement: Placement, now: datetime) -> None:
    """Mark a placement, locked by the caller, whose load or unload does not come to an end."""
    placement.observed = Observed.STALLED
    placement.since = now
    placement.save(update_fields=["observed", "since"])


def hung_loads(placements: Iterable[Placement | _Known]) -> int:
    """How many of a server's load threads are held by loads that never end."""
    return sum(
        placement.observed == Observed.STALLED
        and any(version["state"] == LOADING for version in placement.versions)
        for placement in placements
    )


def hung_loads_allowed() -> int:
    """With this many hung loads a server loads nothing any more: one thread must stay free."""
    return max(1, settings.TRITON_LOAD_THREADS - 1)


# One look


def _claim(now: datetime) -> list[Server]:
    """Take the looks that are due, so that no other sweep takes them."""
    soon = now + _EARLY
    never = Q(looked_at=None)
    external = Q(is_external=True, looked_at__lte=soon - LOOK_AT_EXTERNAL_EVERY)
    tritons = Q(kind=Server.Kind.TRITON, looked_at__lte=soon - LOOK_EVERY)
    engines = Q(is_external=False, looked_at__lte=soon - LOOK_AT_ENGINES_EVERY)
    with transaction.atomic():
        servers = list(
            Server.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(never | external | tritons | engines, is_enabled=True)
            .order_by("pk")
        )
        Server.objects.filter(pk__in=[server.pk for server in servers]).update(looked_at=now)
    for server in servers:
        server.looked_at = now
    return servers


def _mark_seen(seen: Sequence[ServerSeen]) -> None:
    answered = [sighting.server_id for sighting in seen if not sighting.failure]
    Server.objects.filter(pk__in=answered).update(last_seen_at=timezone.now())


def _known_of(servers: Sequence[Server]) -> dict[int, list[_Known]]:
    """What is kept of each server's placements, by server id; one query."""
    found: dict[int, list[_Known]] = {server.pk: [] for server in servers}
    rows = Placement.objects.filter(server__in=servers).order_by()
    for server_id, *values in rows.values_list(
        "server_id", "model__name", "desired", "observed", "versions", "reason"
    ):
        found[server_id].append(_Known(*values))
    return found


def _is_news(server: Server, known: Sequence[_Known], seen: ServerSeen) -> bool:
    """Whether anything would be written; cheap, on rows that nobody has locked."""
    if seen.failure:
        return True
    facts = _server_facts(server, hung_loads(known), seen, timezone.now())
    if any(getattr(server, name) != value for name, value in facts.items()):
        return True
    models = seen.models
    if models is None:
        return False
    return not models.keys() <= {row.name for row in known} or any(
        (row.observed, row.versions, row.reason)
        != _model_facts(row.desired, row.observed, models.get(row.name))
        for row in known
    )


# What is true after a look


def _model_facts(
    desired: str, observed_before: str, model: ModelSeen | None
) -> tuple[Observed, list[dict[str, object]], str]:
    """`observed`, `versions` and `reason` of a placement whose model was just seen so."""
    observed = observed_of(model)
    reason = "" if model is None else model.failure
    if observed == Observed.UNAVAILABLE and desired == Placement.Desired.UNLOADED:
        # Triton keeps the reason of a failed load for ever, also when the model was unloaded.
        observed, reason = Observed.UNLOADED, ""
    if observed_before == Observed.STALLED and observed in _MOVING:
        observed = Observed.STALLED
    return observed, [] if model is None else model.rows, reason


_MOVING = {Observed.LOADING, Observed.UNLOADING}


def _server_facts(server: Server, hung: int, seen: ServerSeen, now: datetime) -> dict[str, Any]:
    """Observed columns of a server that has answered and has `hung` loads."""
    complaint = seen.complaint
    if not complaint and hung >= hung_loads_allowed():
        complaint = {"code": "needs_restart", "hung": hung}
    facts: dict[str, Any] = {
        "state": Server.State.DEGRADED if complaint else Server.State.ONLINE,
        "state_reason": complaint,
        "failed_looks": 0,
    }
    if server.is_triton:
        facts |= {
            "engine_version": seen.engine_version,
            "extensions": list(seen.extensions),
        }
        return facts | _control_facts(seen, now)
    # An engine that refuses to answer still offers what it did.
    return facts if complaint else facts | {"offered_models": list(seen.offered_models)}


def _control_facts(seen: ServerSeen, now: datetime) -> dict[str, Any]:
    if seen.may_control is None:
        return {}
    mode = Server.ControlMode.EXPLICIT if seen.may_control else Server.ControlMode.READ_ONLY
    return {"control_mode": mode, "control_checked_at": now}


def _write_server(server: Server, facts: dict[str, Any]) -> None:
    before = row_assign(server, facts)
    if "state" in before:
        server.state_since = timezone.now()
        announce_on_commit("config")
        log.info("fleet.server_state_changed", server=server.name, state=str(server.state))
    if before:
        server.save(update_fields=[*before, "state_since"])
    if set(before) - {"failed_looks", "control_checked_at"}:
        live.changed_on_commit("server", server.pk, server_id=server.pk)


def _lose_sight(server: Server, placements: Sequence[Placement], seen: ServerSeen) -> None:
    """Count a failed look; after the third in a row nothing is known of the server's models."""
    facts: dict[str, Any] = {"failed_looks": server.failed_looks + 1}
    was_known = server.state in {Server.State.ONLINE, Server.State.DEGRADED}
    if was_known and server.failed_looks < FAILED_LOOKS_ALLOWED:
        _write_server(server, facts)
        return
    _write_server(
        server,
        {
            **facts,
            "state": Server.State.UNREACHABLE,
            "state_reason": seen.failure,
            "control_mode": Server.ControlMode.UNKNOWN,
            "control_checked_at": None,
        },
    )
    _forget(placements)


def _forget(placements: Sequence[Placement]) -> None:
    """Their versions stay as last seen: whether the process is a new one is told from them."""
    known = [placement for placement in placements if placement.observed != Observed.UNKNOWN]
    now = timezone.now()
    for placement in known:
        placement.observed, placement.since = Observed.UNKNOWN, now
        live.changed_on_commit("placement", placement.pk, server_id=placement.server_id)
    Placement.objects.bulk_update(known, ["observed", "since"])


# Models that are new, and servers that are


def _placements_locked(server: Server) -> list[Placement]:
    return list(
        Placement.objects.select_for_update(of=("self",), no_key=True)
        .filter(server=server)
        .select_related("model", "server")
        .order_by("pk")
    )


def _discover(server: Server, placements: Sequence[Placement], models: Models) -> list[Placement]:
    """New unmanaged placements of models that nobody has told us about."""
    known = {placement.model.name for placement in placements}
    names = [name for name in models if name not in known]
    if not names:
        return []
    served = catalog.models_discover(names)
    made = [
        Placement.objects.create(server=server, model=served[name], since=timezone.now())
        for name in names
    ]
    audit_write(actor=SYSTEM, action="server.discover", target=server, after={"models": names})
    return made


def _has_restarted(placements: Sequence[Placement], models: Models) -> bool:
    """Whether the server's process has forgotten what an older one had loaded.

    Triton keeps a row for each version that was ever loaded, also after an unload; so a model
    whose folder alone is listed has never been loaded by this process.
    """
    return any(
        model is not None
        and not model.versions
        and any(version["state"] in _ASKED_FOR for version in placement.versions)
        for placement in placements
        for model in [models.get(placement.model.name)]
    )


def _restore(server: Server, placements: Sequence[Placement]) -> None:
    """Ask for what should be loaded on a server that has started anew.

    What could not be loaded before is left alone, so that a model that takes its server down does
    not do so for ever.
    """
    audit_write(actor=SYSTEM, action="server.restart", target=server)
    log.warning("fleet.server_restarted", server=server.name)
    for placement in placements:
        latest = placement.latest_operation
        has_failed = latest is not None and latest.state == Operation.State.FAILED
        if placement.desired != Placement.Desired.LOADED or has_failed:
            continue
        if placement.observed not in {Observed.READY, Observed.DEGRADED, Observed.LOADING}:
            _load_again(placement)


def _load_again(placement: Placement) -> None:
    try:
        operations.operation_open(actor=SYSTEM, placement=placement, kind=Operation.Kind.LOAD)
    except ConflictError:
        log.info("fleet.restore_left_to_open_operation", placement=str(placement))

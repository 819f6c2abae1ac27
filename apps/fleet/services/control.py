"""Moving operations on: one round takes each open operation one step further.

A round first takes its operations (`heartbeat_at` is the claim, and the mark by which later
writes know that it is still theirs), then looks at the servers, decides (`machine`), sends what is
to be sent, and lets go. It never waits for a load: a command is given two seconds, and what takes
longer is seen by a later round. When a worker dies in the middle, its claims grow old and another
round takes over from the rows.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.core.actors import SYSTEM
from apps.core.audit import audit_write
from apps.core.rows import row_locked
from apps.fleet import machine
from apps.fleet.asking import AskError
from apps.fleet.looks import look_at_repositories
from apps.fleet.machine import Again, Decision, End, Send, Verify, Wait, Watch
from apps.fleet.models import Operation, Placement, Server
from apps.fleet.services import observation, operations
from apps.fleet.sightings import LOADING, ModelSeen, Reason, ServerSeen
from apps.fleet.talks import Reply, Talk, Verification, talk_all
from apps.fleet.triton import CommandAnswer, Outcome

log = structlog.get_logger(__name__)

# Longer than a round takes: looks and commands are bounded to a few seconds.
CLAIM_LASTS = timedelta(seconds=15)
MAX_OPEN_LOADS = 2
_MAX_AT_ONCE = 50
_RETRY_WHEN_FULL_SECONDS = 1.0

State = Operation.State


def operations_advance() -> int:
    """Take every open operation that is due one step further; gives how many were taken.

    Safe to run at any time and many at once.
    """
    taken = _claim(timezone.now())
    if not taken:
        return 0
    seen = _look(taken)
    talks = [talk for item in taken if (talk := _step(item, seen[item.placement.server_id]))]
    _talk(talks, seen)
    return len(taken)


# Taking


def _claim(now: datetime) -> list[Operation]:
    """Take what is due and not in another's hands, oldest first."""
    is_free = Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - CLAIM_LASTS)
    with transaction.atomic():
        taken = list(
            Operation.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
            .filter(is_free, state__in=Operation.OPEN_STATES, due_at__lte=now)
            .select_related("placement__server", "placement__model")
            .order_by("due_at")[:_MAX_AT_ONCE]
        )
        Operation.objects.filter(pk__in=[item.pk for item in taken]).update(heartbeat_at=now)
    for operation in taken:
        operation.heartbeat_at = now
    return taken


def _look(taken: Sequence[Operation]) -> dict[int, ServerSeen]:
    servers = {item.placement.server_id: item.placement.server for item in taken}
    seen = asyncio.run(look_at_repositories(list(servers.values())))
    return {sighting.server_id: sighting for sighting in seen}


# Deciding, and writing what was decided


def _step(operation: Operation, seen: ServerSeen) -> Talk | None:
    """Decide and write; what is given back is still to be done, by talking to the server."""
    now = timezone.now()
    if not operation.placement.server.is_enabled:
        decision: Decision = End(State.FAILED, {"code": "server_disabled"})
        return _write(operation, decision, seen, now)
    if seen.models is None:
        return _write(operation, machine.decide_unseen(operation, seen.failure, now), seen, now)
    model = seen.models.get(operation.placement.model.name)
    return _write(operation, machine.decide(operation, model, now), seen, now)


def _write(
    operation: Operation, decision: Decision, seen: ServerSeen, now: datetime
) -> Talk | None:
    """Write a decision, unless the operation is not ours any more; gives what is left to say."""
    match decision:
        case Send():
            return _dispatch(operation, seen, now)
        case Verify():
            is_ours = _move(operation, state=State.VERIFYING)
            return Talk(operation, "verify", _model_of(operation, seen)) if is_ours else None
        case Watch():
            _watch(operation, now)
        case Wait():
            _wait(operation, decision, seen, now)
        case Again():
            _again(operation, decision, now)
        case End():
            _end(operation, decision, seen, now)
    return None


def _move(operation: Operation, **values: Any) -> bool:
    """Compare and set: False when another has taken the operation on meanwhile."""
    before = operation.state
    is_ours = Operation.objects.filter(
        pk=operation.pk,
        state=before,
        generation=operation.generation,
        heartbeat_at=operation.heartbeat_at,
    ).update(**values)
    if not is_ours:
        log.info("fleet.operation_taken_over", operation=str(operation.pk))
        return False
    for name, value in values.items():
        setattr(operation, name, value)
    if operation.state != before:
        log.info("fleet.operation_moved", operation=str(operation.pk), state=str(operation.state))
        operations.operation_changed(operation, operation.placement)
    return True


@transaction.atomic
def _dispatch(operation: Operation, seen: ServerSeen, now: datetime) -> Talk | None:
    """Turn pending into dispatched before the command goes out: it can be sent once only.

    The server's row is locked, so that two rounds together do not load too much at once.
    """
    server = row_locked(Server, operation.placement.server_id)
    model = _model_of(operation, seen)
    if operation.step == Operation.Step.LOAD:
        hung = observation.hung_loads(server.placements.all())
        if hung >= observation.hung_loads_allowed():
            verdict: Reason = {"code": "server_needs_restart", "hung": hung}
            _end(operation, End(State.NEEDS_RESTART, verdict), seen, now)
            return None
        if not _has_room(server, operation, seen):
            _wait(operation, Wait(seconds=_RETRY_WHEN_FULL_SECONDS), seen, now)
            return None
    is_ours = _move(
        operation,
        state=State.DISPATCHED,
        attempts=operation.attempts + 1,
        versions_before=[] if model is None else model.rows,
        **_sending(operation, now),
    )
    return Talk(operation, "send", model) if is_ours else None


def _has_room(server: Server, operation: Operation, seen: ServerSeen) -> bool:
    """Whether one more load leaves a load thread free, and two at most are ours."""
    ours = (
        Operation.objects.filter(
            placement__server=server,
            step=Operation.Step.LOAD,
            state__in=(State.DISPATCHED, State.OBSERVING),
        )
        .exclude(pk=operation.pk)
        .count()
    )
    loading = sum(
        any(version.state == LOADING for version in model.versions)
        for model in (seen.models or {}).values()
    )
    threads = max(1, settings.TRITON_LOAD_THREADS - 1)
    return ours < min(MAX_OPEN_LOADS, threads) and loading < threads


def _sending(operation: Operation, now: datetime) -> dict[str, Any]:
    """Columns of an operation whose command goes out now."""
    seconds = operation.placement.model.load_deadline_seconds
    is_load = operation.step == Operation.Step.LOAD
    return {
        "dispatched_at": operation.dispatched_at or now,
        "sent_at": now,
        "is_accepted": None,
        "has_moved": False,
        "deadline_at": now + (timedelta(seconds=seconds) if is_load else machine.UNLOAD_DEADLINE),
    }


def _watch(operation: Operation, now: datetime) -> None:
    """Somebody else's command does what we want."""
    values = {**_sending(operation, now), "has_moved": True}
    _move(operation, state=State.OBSERVING, heartbeat_at=None, **values)


def _wait(operation: Operation, decision: Wait, seen: ServerSeen, now: datetime) -> None:
    """Let go until the next round. A server that answers may keep a pending operation waiting."""
    values: dict[str, Any] = {
        "heartbeat_at": None,
        "due_at": now + timedelta(seconds=decision.seconds),
        "has_moved": operation.has_moved or decision.has_moved,
    }
    if operation.state == State.PENDING and seen.models is not None:
        values["deadline_at"] = now + operations.WAIT_FOR_SERVER
    elif operation.state in {State.DISPATCHED, State.VERIFYING}:
        values["state"] = State.OBSERVING
    _move(operation, **values)


def _again(operation: Operation, decision: Again, now: datetime) -> None:
    values: dict[str, Any] = {"step": decision.step}
    if decision.is_next:
        values |= {"attempts": 0, "deadline_at": now + operations.WAIT_FOR_SERVER}
    due_at = now + timedelta(seconds=decision.seconds)
    _move(operation, state=State.PENDING, heartbeat_at=None, due_at=due_at, **values)


@transaction.atomic
def _end(operation: Operation, end: End, seen: ServerSeen, now: datetime) -> None:
    """Finish an operation; the placement shows at once what was seen last."""
    server = row_locked(Server, operation.placement.server_id)
    placement = row_locked(Placement, operation.placement_id)
    if seen.models is not None:
        observation.placement_see(placement, _model_of(operation, seen), now)
    if end.state == State.STALLED:
        observation.placement_stall(placement, now)
    hung = observation.hung_loads(server.placements.all())
    needs_restart = end.state == State.STALLED and hung >= observation.hung_loads_allowed()
    is_ours = _move(
        operation,
        state=State.NEEDS_RESTART if needs_restart else end.state,
        verdict=end.verdict,
        reason=end.reason,
        finished_at=now,
        heartbeat_at=None,
    )
    if is_ours:
        _audit_end(operation, placement)


def _audit_end(operation: Operation, placement: Placement) -> None:
    audit_write(
        actor=SYSTEM,
        action=f"operation.{operation.state}",
        target=placement,
        after={
            "operation": operation.pk,
            "kind": operation.kind,
            "verdict": operation.verdict,
            "reason": operation.reason,
        },
    )


def _model_of(operation: Operation, seen: ServerSeen) -> ModelSeen | None:
    return None if seen.models is None else seen.models.get(operation.placement.model.name)


# Talking to servers


def _talk(talks: Sequence[Talk], seen: Mapping[int, ServerSeen]) -> None:
    """Send what is to be sent and ask what is to be asked, all at once; then write what came."""
    if not talks:
        return
    replies = asyncio.run(talk_all(talks))
    for talk, reply in zip(talks, replies, strict=True):
        _settle(talk.operation, reply, seen[talk.operation.placement.server_id])


def _settle(operation: Operation, reply: Reply, seen: ServerSeen) -> None:
    """Write what a server has replied."""
    now = timezone.now()
    model = _model_of(operation, seen)
    decision: Decision | None
    match reply:
        case CommandAnswer():
            decision = machine.decide_answered(operation, reply, now)
            if decision is None:
                _sent(operation, is_accepted=reply.outcome == Outcome.ACCEPTED or None)
                return
        case Verification() if model is not None:
            decision = machine.decide_verified(
                operation, are_ready=reply.are_ready, model=model, missing=reply.missing, now=now
            )
        case AskError():
            decision = machine.decide_unseen(operation, reply.reason, now)
        case _:
            decision = Wait()
    _write(operation, decision, seen, now)


def _sent(operation: Operation, *, is_accepted: bool | None) -> None:
    """The command is out: from now on the index is watched."""
    _move(operation, state=State.OBSERVING, is_accepted=is_accepted, heartbeat_at=None)

"""What to do next about an operation: pure decisions, from what is known and what was just seen.

    PENDING ──send──► DISPATCHED ──► OBSERVING ──ready──► VERIFYING ──► DONE
       ▲                                 │                    │
       └────── retry, or next step ──────┴──► FAILED, STALLED ◄┘

A command's own answer is a hint; the repository index decides. Every rule here holds for an
operation that was adopted from a dead worker: then the command's answer is unknown.

Loads are plain: the repository's own config.pbtxt is what is loaded. A plain load of a model that
is ready does nothing, or replaces it invisibly when files have changed, and a config sent along
would hide the one on disk for good. So a load of a ready model is not sent at all, and a reload is
an unload, a wait, and a load: each of its steps can be seen in the index, also when Python
processes of the model have died, and the price is that the model is away meanwhile.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apps.fleet.models import Operation
from apps.fleet.sightings import ModelSeen, Reason, Standing, standing_of
from apps.fleet.triton import CommandAnswer, Outcome

Kind = Operation.Kind
Step = Operation.Step
State = Operation.State

# An answer that the index does not bear out within this time is taken for a lie.
SETTLE = timedelta(seconds=10)
# A draining model may be loaded again after this time: two copies serve for a while.
DRAIN_BEFORE_LOAD = timedelta(seconds=15)
UNLOAD_DEADLINE = timedelta(seconds=120)
MAX_ATTEMPTS = 3
# Seconds to wait before a command is sent for the second, third … time.
_BACK_OFF = (2, 5, 15, 60)

_GONE = {Standing.ABSENT, Standing.LISTED, Standing.UNLOADED, Standing.UNAVAILABLE}
_SERVING = {Standing.READY, Standing.PARTLY_READY}


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again later: in `seconds`, or with the next round for 0."""

    has_moved: bool = False
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Send the command of the step."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Go on as if the command had been sent: somebody else's does the same."""


@dataclass(frozen=True, slots=True)
class Verify:
    """The index shows what is wanted: ask the model itself."""


@dataclass(frozen=True, slots=True)
class Again:
    """Back to pending for `step`; `seconds` until it is due."""

    step: Operation.Step
    seconds: float = 0
    # True for the next step: attempts count anew.
    is_next: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """It is over. `verdict` is a code with its parameters, `reason` the server's own words."""

    state: Operation.State
    verdict: Reason
    reason: str = field(default="")


Decision = Wait | Send | Watch | Verify | Again | End


def decide(operation: Operation, model: ModelSeen | None, now: datetime) -> Decision:
    """The next step after a fresh look; `model` is `None` where the repository has none."""
    if operation.state == State.PENDING:
        return (
            _pending_load(operation, model, now)
            if _loads(operation)
            else _pending_unload(operation, model)
        )
    if _loads(operation):
        return _sent_load(operation, model, now)
    return _sent_unload(operation, model, now)


def decide_unseen(operation: Operation, failure: Reason, now: datetime) -> Decision:
    """The next step when the server could not be looked at."""
    if now >= operation.deadline_at:
        return End(State.FAILED, {"code": "server_unreachable", "cause": failure.get("code", "")})
    return Wait(seconds=_BACK_OFF[0])


def decide_answered(operation: Operation, answer: CommandAnswer, now: datetime) -> Decision | None:
    """What a command's answer settles by itself; `None`: go and look."""
    match answer.outcome:
        case Outcome.ACCEPTED | Outcome.UNKNOWN:
            return None
        case Outcome.NOT_SENT:
            end = End(State.FAILED, {"code": "server_unreachable", "cause": "connect_failed"})
            return (
                end if now >= operation.deadline_at else Again(Step(operation.step), _BACK_OFF[1])
            )
        case Outcome.POLL_FAILED:
            # Once more after a while: the folder may be half copied.
            end = End(State.FAILED, {"code": "poll_failed"}, answer.reason)
            return end if operation.attempts > 1 else Again(Step(operation.step), _BACK_OFF[1])
        case Outcome.REFUSED:
            code = "load_failed" if _loads(operation) else "unload_failed"
            return End(State.FAILED, {"code": code}, answer.reason)
        case Outcome.READ_ONLY | Outcome.ACCESS_REFUSED:
            return End(State.FAILED, {"code": str(answer.outcome)}, answer.reason)


def decide_verified(
    operation: Operation, *, are_ready: bool, model: ModelSeen, missing: list[int], now: datetime
) -> Decision:
    """The next step after the model was asked itself.

    `missing`: versions that its config names one by one and that are not ready.
    """
    versions = model.ready_versions
    if are_ready and missing:
        verdict: Reason = {"code": "versions_missing", "missing": missing, "ready": versions}
        return End(State.FAILED, verdict, model.failure)
    if are_ready:
        code = "reloaded" if operation.kind == Kind.RELOAD else "loaded"
        return End(State.DONE, {"code": code, "versions": versions})
    if now >= operation.deadline_at:
        return End(State.FAILED, {"code": "not_ready_itself", "versions": versions})
    return Wait()


def _loads(operation: Operation) -> bool:
    return operation.step == Step.LOAD


def _pending_load(operation: Operation, model: ModelSeen | None, now: datetime) -> Decision:
    match standing_of(model):
        case Standing.ABSENT:
            return End(State.FAILED, {"code": "not_in_repository"})
        case Standing.READY if model is not None and operation.kind == Kind.LOAD:
            return End(State.DONE, {"code": "ready_already", "versions": model.ready_versions})
        case Standing.READY | Standing.LOADING:
            return Watch()
        case Standing.UNLOADING if now < operation.sent_since + DRAIN_BEFORE_LOAD:
            return Wait()
    return Send()


def _pending_unload(operation: Operation, model: ModelSeen | None) -> Decision:
    standing = standing_of(model)
    if operation.kind == Kind.RELOAD:
        if standing == Standing.ABSENT:
            return End(State.FAILED, {"code": "not_in_repository"})
        if standing in _GONE:
            return Again(Step.LOAD, is_next=True)
    # What has failed is unloaded as well: a failed ensemble would start itself later.
    elif standing in _GONE - {Standing.UNAVAILABLE}:
        return End(State.DONE, {"code": "unloaded_already"})
    return Watch() if standing == Standing.UNLOADING else Send()


def _sent_load(operation: Operation, model: ModelSeen | None, now: datetime) -> Decision:
    standing = standing_of(model)
    if standing == Standing.READY:
        return Verify()
    if standing in {Standing.LOADING, Standing.UNLOADING}:
        if now < operation.deadline_at:
            return Wait(has_moved=True)
        return End(State.STALLED, {"code": "load_hangs", "seconds": _seconds(operation, now)})
    if operation.is_accepted:
        # Triton answers a load when it has ended, so there is nothing left to wait for.
        return Verify() if standing == Standing.PARTLY_READY else _not_ready(model)
    if _has_moved(operation, model) and standing != Standing.LISTED:
        return _not_ready(model)
    return _lost(operation, now, _not_ready(model))


def _has_moved(operation: Operation, model: ModelSeen | None) -> bool:
    """Whether anything has been seen to happen since the command was sent."""
    rows = [] if model is None else model.rows
    return operation.has_moved or rows != operation.versions_before


def _not_ready(model: ModelSeen | None) -> End:
    """The load has ended, and the model is not ready."""
    failure = "" if model is None else model.failure
    if model is not None and model.ready_versions:
        verdict: Reason = {"code": "partly_loaded", "versions": model.ready_versions}
        return End(State.FAILED, verdict, failure)
    return End(State.FAILED, {"code": "load_failed" if failure else "not_ready"}, failure)


def _sent_unload(operation: Operation, model: ModelSeen | None, now: datetime) -> Decision:
    standing = standing_of(model)
    if standing in _GONE:
        if operation.kind == Kind.RELOAD:
            return Again(Step.LOAD, is_next=True)
        return End(State.DONE, {"code": "unloaded"})
    if model is not None and model.is_moving:
        return _draining(operation, now, is_loading=standing == Standing.LOADING)
    unchanged = End(State.FAILED, {"code": "nothing_changed"})
    if _has_moved(operation, model):
        return unchanged
    if operation.is_accepted:
        return unchanged if now >= operation.sent_since + SETTLE else Wait()
    return _lost(operation, now, unchanged)


def _draining(operation: Operation, now: datetime, *, is_loading: bool) -> Decision:
    """Requests that have begun are still answered; a load that is on is waited for first."""
    drained_long = now >= operation.sent_since + DRAIN_BEFORE_LOAD
    if operation.kind == Kind.RELOAD and drained_long and not is_loading:
        return Again(Step.LOAD, is_next=True)
    if now >= operation.deadline_at:
        return End(State.STALLED, {"code": "unload_hangs", "seconds": _seconds(operation, now)})
    return Wait(has_moved=not is_loading)


def _lost(operation: Operation, now: datetime, end: End) -> Decision:
    """No answer and nothing to be seen: it has not arrived, or the server has restarted."""
    if now < operation.sent_since + SETTLE:
        return Wait()
    return _send_again(operation, now, end)


def _send_again(operation: Operation, now: datetime, end: End) -> Decision:
    if operation.attempts >= MAX_ATTEMPTS or now >= operation.deadline_at:
        return end
    return Again(Step(operation.step), _BACK_OFF[min(operation.attempts, len(_BACK_OFF)) - 1])


def _seconds(operation: Operation, now: datetime) -> int:
    return int((now - operation.sent_since).total_seconds())

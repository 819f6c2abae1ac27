"""States of the fleet as badges, and codes as sentences."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from django import template
from django.utils import timezone

from apps.fleet import words
from apps.fleet.models import Operation, Placement, Server

register = template.Library()


class Look(NamedTuple):
    """Tone (ok, warn, bad, info, idle) and Lucide icon of a state."""

    tone: str
    icon: str
    busy: bool = False


_SERVER_LOOKS: dict[str, Look] = {
    Server.State.ONLINE: Look("ok", icon="circle-check"),
    Server.State.DEGRADED: Look("warn", icon="triangle-alert"),
    Server.State.UNREACHABLE: Look("bad", icon="circle-x"),
    Server.State.UNKNOWN: Look("idle", icon="circle-help"),
}
_PLACEMENT_LOOKS: dict[str, Look] = {
    Placement.Observed.READY: Look("ok", icon="circle-check"),
    Placement.Observed.LOADING: Look("info", icon="loader-circle", busy=True),
    Placement.Observed.UNLOADING: Look("info", icon="loader-circle", busy=True),
    Placement.Observed.DEGRADED: Look("warn", icon="triangle-alert"),
    Placement.Observed.STALLED: Look("warn", icon="hourglass"),
    Placement.Observed.UNAVAILABLE: Look("bad", icon="circle-x"),
    Placement.Observed.UNLOADED: Look("idle", icon="circle-minus"),
    Placement.Observed.ABSENT: Look("idle", icon="circle-slash"),
    Placement.Observed.UNKNOWN: Look("idle", icon="circle-help"),
}
_OPERATION_LOOKS: dict[str, Look] = {
    Operation.State.DONE: Look("ok", icon="circle-check"),
    Operation.State.FAILED: Look("bad", icon="circle-x"),
    Operation.State.STALLED: Look("warn", icon="hourglass"),
    Operation.State.NEEDS_RESTART: Look("bad", icon="power"),
    Operation.State.SUPERSEDED: Look("idle", icon="circle-slash"),
}
_FAILED_STATES = (
    Operation.State.FAILED,
    Operation.State.STALLED,
    Operation.State.NEEDS_RESTART,
)
_SERVING_STATES = (
    Placement.Observed.READY,
    Placement.Observed.DEGRADED,
    Placement.Observed.STALLED,
)
_OPEN_LOOK = Look("info", icon="loader-circle", busy=True)


def _badge(look: Look, text: str) -> dict[str, object]:
    return {"tone": look.tone, "icon": look.icon, "busy": look.busy, "text": text}


@register.inclusion_tag("components/badge.html")
def server_badge(server: Server) -> dict[str, object]:
    """What the last look at a server said."""
    return _badge(_SERVER_LOOKS[server.state], server.get_state_display())


@register.inclusion_tag("components/badge.html")
def placement_badge(placement: Placement) -> dict[str, object]:
    """What was last seen of a placement."""
    return _badge(_PLACEMENT_LOOKS[placement.observed], placement.get_observed_display())


@register.inclusion_tag("components/badge.html")
def operation_badge(operation: Operation) -> dict[str, object]:
    """How far an operation is, or how it ended."""
    look = _OPERATION_LOOKS.get(operation.state, _OPEN_LOOK)
    return _badge(look, operation.get_state_display())


@register.filter
def version_tone(state: str) -> str:
    """Tone of one version as Triton names its state."""
    return {"READY": "ok", "LOADING": "info", "UNLOADING": "info", "UNAVAILABLE": "idle"}.get(
        state, "idle"
    )


@register.filter
def elapsed_ratio(operation: Operation) -> float:
    """How much of the time it may take has passed, 0 to 1."""
    start = operation.dispatched_at or operation.created_at
    whole = (operation.deadline_at - start).total_seconds()
    return _bounded((timezone.now() - start).total_seconds() / whole) if whole > 0 else 1.0


def _bounded(ratio: float) -> float:
    return min(1.0, max(0.0, ratio))


@register.filter
def duration_seconds(operation: Operation) -> float | None:
    """Seconds from the request to the end; `None` while it is open."""
    end: datetime | None = operation.finished_at
    return (end - operation.created_at).total_seconds() if end else None


@register.filter
def failure(placement: Placement) -> Operation | None:
    """The newest operation of a placement when it went wrong."""
    newest = placement.latest_operation
    return newest if newest is not None and newest.state in _FAILED_STATES else None


@register.filter
def is_serving(placement: Placement) -> bool:
    """True when unloading would take something away."""
    return placement.observed in _SERVING_STATES


@register.filter
def is_steerable(placement: Placement) -> bool:
    """True where the server lets us load and unload."""
    server = placement.server
    return server.is_triton and server.control_mode != Server.ControlMode.READ_ONLY


@register.simple_tag
def reason_words(reason: Mapping[str, object]) -> str:
    """What is wrong with a server, in the reader's language; "" when nothing is."""
    return words.server_words(reason)


@register.simple_tag
def operation_words(operation: Operation) -> str:
    """How an operation ended, in the reader's language; "" while it is open."""
    return words.verdict_words(operation.verdict)

"""Circuit breakers: targets that fail are left alone for a while, then tried by one request.

Each worker keeps its own: what one has seen may be its own network, and a state that is shared
would let one worker's bad luck stop all. A worker learns within a few requests.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from apps.core.errors import UpstreamError
from apps.gateway.errors import UpstreamBusyError
from apps.gateway.snapshot import TargetRow

log = structlog.get_logger(__name__)

# In a row: fewer may be chance, more would make many requests wait for nothing.
_FAILURES = 5
_FIRST_SECONDS = 2.0
_MOST_SECONDS = 60.0
# A server that refuses our key or account does so until a person has changed something.
_MISCONFIGURED_SECONDS = 30.0
# How long the one request that tries a target again keeps the others away.
_PROBE_SECONDS = 5.0
_MOST_TARGETS = 10_000


@dataclass(slots=True)
class _State:
    failures: int = 0
    # How often it was opened since it last worked, and until when it is.
    openings: int = 0
    until: float = 0.0


class Breakers:
    """Those of one worker. `now` tells seconds that only grow."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._states: dict[int, _State] = {}

    def seconds_left(self, target_id: int) -> float:
        """How long the target is still left alone; 0.0 when it may be tried."""
        state = self._states.get(target_id)
        return 0.0 if state is None else max(0.0, state.until - self._now())

    def ready(self, targets: Iterable[TargetRow]) -> list[TargetRow]:
        """Those that may be tried, in their order."""
        if not self._states:  # nearly always
            return list(targets)
        return [target for target in targets if not self.seconds_left(target.id)]

    def begin(self, target_id: int) -> None:
        """A request is sent there: if the target was opened, the others wait how this one fares."""
        state = self._states.get(target_id)
        if state is not None and state.openings:
            state.until = self._now() + _PROBE_SECONDS

    def worked(self, target_id: int) -> None:
        """The target has answered, be it to say that the request is wrong."""
        if self._states and self._states.pop(target_id, None) is not None:
            log.info("gateway.target_works", target_id=target_id)

    def failed(self, target: TargetRow, failure: UpstreamError) -> None:
        """Count a failure; whether it opens the breaker depends on its kind."""
        state = self._states.get(target.id)
        if state is None:
            if len(self._states) >= _MOST_TARGETS:
                self._states.clear()
            state = self._states[target.id] = _State()
        state.failures += 1
        seconds = _seconds(state, failure)
        if not seconds:
            return
        state.openings += 1
        state.until = self._now() + seconds
        log.warning(
            "gateway.target_cools_down",
            target=target.label,
            reason=failure.code,
            seconds=round(seconds, 1),
        )


def _seconds(state: _State, failure: UpstreamError) -> float:
    """How long to leave the target alone; 0.0: not at all."""
    if failure.code == "upstream_misconfigured":
        return _MISCONFIGURED_SECONDS
    if isinstance(failure, UpstreamBusyError) and failure.is_told:
        return min(failure.retry_after_seconds, _MOST_SECONDS)
    if state.failures < _FAILURES and not state.openings:
        return 0.0
    grown = _FIRST_SECONDS * (1 << min(state.openings, 5))
    # Workers that saw the same failure do not all come back at the same moment.
    return min(grown, _MOST_SECONDS) * random.uniform(0.8, 1.2)  # noqa: S311

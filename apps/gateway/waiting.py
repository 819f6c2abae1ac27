"""Waiting while every target of a route is full: by priority, then by age, within bounds.

Whoever waits holds nothing. Only the head of a line asks for a place, so that those behind cannot
overtake; it asks again whenever this worker has settled a request, and every few hundredths of a
second, since the place may be freed by another worker.
"""

import asyncio
import bisect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from apps.gateway.admission.refusal import TargetsBusyError
from apps.gateway.snapshot import RouteRow

Placed = TypeVar("Placed")

_POLL_SECONDS = 0.05
# A class of priority (there are ten) is worth so much waiting: nobody waits for ever.
_SECONDS_A_CLASS = 5.0


@dataclass(order=True, slots=True)
class _Waiter:
    """One request in a line. `rank`: when it would have come, had it the lowest priority."""

    rank: float
    number: int
    moved: asyncio.Event = field(default_factory=asyncio.Event, compare=False)


class WaitingRoom:
    """The lines of one worker, one a route."""

    def __init__(self) -> None:
        self._lines: dict[int, list[_Waiter]] = {}
        self._numbers = count()

    async def enter(
        self, route: RouteRow, priority: int, attempt: Callable[[], Awaitable[Placed]]
    ) -> Placed:
        """What `attempt` gives as soon as it finds a place.

        Raises TargetsBusyError past the bounds of the route, and whatever else `attempt` raises.
        """
        if route.id not in self._lines:
            try:
                return await attempt()
            except TargetsBusyError:
                if not route.policy.wait_seconds:
                    raise
        return await self._wait(route, priority, attempt)

    def freed(self, route_id: int) -> None:
        """A place may be free now: let the head of the line look."""
        line = self._lines.get(route_id)
        if line:
            line[0].moved.set()

    async def _wait(
        self, route: RouteRow, priority: int, attempt: Callable[[], Awaitable[Placed]]
    ) -> Placed:
        line = self._lines.setdefault(route.id, [])
        if len(line) >= route.policy.max_waiting:
            self._tidy(route.id)
            raise TargetsBusyError
        now = asyncio.get_running_loop().time()
        waiter = _Waiter(now - priority * _SECONDS_A_CLASS, next(self._numbers))
        bisect.insort(line, waiter)
        try:
            return await self._stand(line, waiter, now + route.policy.wait_seconds, attempt)
        finally:
            line.remove(waiter)
            self._tidy(route.id)
            self.freed(route.id)

    async def _stand(
        self,
        line: list[_Waiter],
        waiter: _Waiter,
        until: float,
        attempt: Callable[[], Awaitable[Placed]],
    ) -> Placed:
        loop = asyncio.get_running_loop()
        while True:
            if line[0] is waiter:
                try:
                    return await attempt()
                except TargetsBusyError:
                    if loop.time() >= until:
                        raise
            elif loop.time() >= until:
                raise TargetsBusyError
            waiter.moved.clear()
            try:
                async with asyncio.timeout(min(_POLL_SECONDS, max(0.0, until - loop.time()))):
                    await waiter.moved.wait()
            except TimeoutError:
                continue

    def _tidy(self, route_id: int) -> None:
        if not self._lines.get(route_id):
            self._lines.pop(route_id, None)

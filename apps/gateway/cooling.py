"""Waiting while every target of a route cools down: a bounded time, and not too many at once."""

import asyncio
from collections import Counter
from collections.abc import Callable

from apps.core.errors import NoCapacityError
from apps.gateway.breakers import Breakers
from apps.gateway.snapshot import RouteRow, TargetRow


class Cooling:
    """The requests of one worker that wait. Nothing is held for them yet."""

    def __init__(self, breakers: Breakers) -> None:
        self._breakers = breakers
        self._waiting: Counter[int] = Counter()

    async def ready(
        self, route: RouteRow, targets_now: Callable[[], list[TargetRow]]
    ) -> list[TargetRow]:
        """Targets that may be tried, as soon as there are any.

        Raises NoCapacityError when that takes longer than the route lets requests wait, or when
        too many wait already; and whatever `targets_now` raises.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + route.policy.wait_seconds
        while True:
            targets = targets_now()
            ready = self._breakers.ready(targets)
            if ready:
                return ready
            seconds = min(self._breakers.seconds_left(target.id) for target in targets)
            is_crowded = self._waiting[route.id] >= route.policy.max_waiting
            if is_crowded or loop.time() + seconds > give_up_at:
                raise NoCapacityError(
                    f"every server of the model “{route.name}” has failed just now and is left "
                    f"alone for a moment; try again in {seconds:.0f} s",
                    code="targets_cooling",
                    retry_after_seconds=max(1.0, seconds),
                )
            await self._sleep(route.id, seconds)

    async def _sleep(self, route_id: int, seconds: float) -> None:
        self._waiting[route_id] += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._waiting[route_id] -= 1
            if not self._waiting[route_id]:
                del self._waiting[route_id]

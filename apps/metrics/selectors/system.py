"""The state of the product itself."""

from threading import Lock
from time import time

from asgiref.sync import async_to_sync

from apps.metrics.health import SystemState, look

# Pages ask often and all at once; the answer of a moment ago is good enough for them.
FRESH_SECONDS = 2.0


class _Cache:
    """The last look; one thread looks, the others wait for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._state: SystemState | None = None

    def get(self) -> SystemState:
        with self._lock:
            if self._state is None or time() - self._state.at > FRESH_SECONDS:
                self._state = async_to_sync(look)()
            return self._state


_cache = _Cache()


def system_state() -> SystemState:
    """What works right now, or two seconds ago. Takes a second at most and never raises."""
    return _cache.get()

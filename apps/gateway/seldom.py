"""Log lines that a storm of equal failures may not repeat."""

import time
from typing import Any

import structlog

_QUIET_SECONDS = 10.0


class SeldomLog:
    """Passes a warning on at most every ten seconds for each event, with how many it swallowed."""

    def __init__(self, log: structlog.stdlib.BoundLogger) -> None:
        self._log = log
        self._quiet_until: dict[str, float] = {}
        self._swallowed: dict[str, int] = {}

    def warning(self, event: str, **fields: Any) -> None:
        """Log, or count."""
        now = time.monotonic()
        if now < self._quiet_until.get(event, 0.0):
            self._swallowed[event] = self._swallowed.get(event, 0) + 1
            return
        self._quiet_until[event] = now + _QUIET_SECONDS
        self._log.warning(event, swallowed=self._swallowed.pop(event, 0), **fields)

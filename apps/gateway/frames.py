"""What a worker measured in the last second, as mergeable histograms for the telemetry.

One frame a second goes to a stream in Redis; `apps.metrics` folds the frames of all workers.
"""

import asyncio
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import orjson
import redis.asyncio
from redis.exceptions import RedisError

from apps.metrics.histogram import bucket_of

STREAM = "inferadmin.gateway-metrics"
_MAX_FRAMES = 5000
_FLUSH_SECONDS = 1.0
# A frame is sent this long after a whole second. The fold groups frames by the second in which they
# arrive; with a period that drifts, now and then a second would get none and the next one two.
_FLUSH_OFFSET_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished request; `first_token_seconds` is `None` when there was none.

    `server` is the server's id as text, "" when no target was reached.
    `added_seconds`: what the request took beyond waiting for model servers.
    """

    route: str
    server: str
    model: str
    status: str
    input_tokens: int
    output_tokens: int
    latency_seconds: float
    first_token_seconds: float | None
    added_seconds: float


@dataclass(slots=True)
class _Row:
    """Sums of one second for a route, server, model and status."""

    count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    latency: Counter[int] = field(default_factory=Counter)
    first_token: Counter[int] = field(default_factory=Counter)
    added: Counter[int] = field(default_factory=Counter)

    def take(self, measured: Measured) -> None:
        """Add a request."""
        self.count += 1
        self.input_tokens += measured.input_tokens
        self.output_tokens += measured.output_tokens
        self.latency[bucket_of(measured.latency_seconds)] += 1
        self.added[bucket_of(measured.added_seconds)] += 1
        if measured.first_token_seconds is not None:
            self.first_token[bucket_of(measured.first_token_seconds)] += 1

    def to_wire(self) -> dict[str, Any]:
        """As the frame holds it; buckets become strings in JSON."""
        return {
            "count": self.count,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "latency": dict(self.latency),
            "first_token": dict(self.first_token),
            "added": dict(self.added),
        }


class Frames:
    """Collects what one worker measures."""

    def __init__(self, client: redis.asyncio.Redis, worker: str) -> None:
        self.in_flight = 0
        self._client = client
        self._worker = worker
        self._rows: defaultdict[tuple[str, str, str, str], _Row] = defaultdict(_Row)

    def take(self, measured: Measured) -> None:
        """Count a finished request."""
        kind = (measured.route, measured.server, measured.model, measured.status)
        self._rows[kind].take(measured)

    async def keep(self) -> None:
        """Send a frame each second, for ever; run it as a task."""
        while True:
            await asyncio.sleep(_seconds_to_flush(time.time()))
            await self.flush()

    async def flush(self) -> None:
        """Send what was collected. A frame that Redis does not take is lost."""
        text = orjson.dumps(self._frame(), option=orjson.OPT_NON_STR_KEYS)
        self._rows.clear()
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._client.xadd(
                    STREAM, {"frame": text}, maxlen=_MAX_FRAMES, approximate=True
                )
        except (RedisError, OSError, TimeoutError):
            return

    def _frame(self) -> dict[str, Any]:
        return {
            "worker": self._worker,
            "at": time.time(),
            "in_flight": self.in_flight,
            "rows": [
                {
                    "route": route,
                    "server": server,
                    "model": model,
                    "status": status,
                    **row.to_wire(),
                }
                for (route, server, model, status), row in self._rows.items()
            ],
        }


def _seconds_to_flush(now: float) -> float:
    return _FLUSH_SECONDS - (now - _FLUSH_OFFSET_SECONDS) % _FLUSH_SECONDS

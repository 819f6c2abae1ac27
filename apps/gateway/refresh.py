"""Keeps the snapshot fresh: rebuilt when a counter in Redis moves, and every half minute anyway."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

import redis.asyncio
import structlog
from django.db import DatabaseError
from redis.exceptions import RedisError

from apps.core.changes import CHANNEL, COUNTERS
from apps.core.errors import NoCapacityError
from apps.gateway.seldom import SeldomLog
from apps.gateway.snapshot import Snapshot

log = structlog.get_logger(__name__)
seldom = SeldomLog(log)

_POLL_SECONDS = 1.0
_REBUILD_SECONDS = 30.0
_RECONNECT_SECONDS = 1.0

LoadSnapshot = Callable[[int], Awaitable[Snapshot]]


class SnapshotKeeper:
    """Holds the snapshot of one event loop. Served stale while Postgres does not answer."""

    def __init__(self, client: redis.asyncio.Redis, load: LoadSnapshot) -> None:
        self._client = client
        self._load = load
        self._snapshot: Snapshot | None = None
        self._counters = {"config": 0, "keys": 0}
        self._version = "0:0"
        self._rebuilt_at = 0.0
        self._moved = asyncio.Event()

    @property
    def version(self) -> str:
        """Changes whenever anything that a worker holds may have changed."""
        return self._version

    def current(self) -> Snapshot:
        """The snapshot; raises NoCapacityError as long as none could be read."""
        if self._snapshot is None:
            raise NoCapacityError(
                "the gateway is starting; try again in a few seconds",
                code="starting",
                retry_after_seconds=2,
            )
        return self._snapshot

    async def refresh(self) -> None:
        """Look at the counters and rebuild what they say is old. Never raises."""
        await self._read_counters()
        is_old = self._snapshot is None or self._snapshot.version != self._counters["config"]
        if is_old or time.monotonic() - self._rebuilt_at > _REBUILD_SECONDS:
            await self._rebuild()

    async def keep(self) -> None:
        """Refresh for ever, each second and when told; run it as a task."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._moved.wait()
            self._moved.clear()
            await self.refresh()

    async def listen(self) -> None:
        """Wait for announcements for ever; run it as a task. A lost one costs a poll."""
        while True:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with self._client.pubsub() as channel:
                    await channel.subscribe(CHANNEL)
                    async for _message in channel.listen():
                        self._moved.set()
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _read_counters(self) -> None:
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                values = await self._client.mget(*COUNTERS.values())
        except (RedisError, OSError, TimeoutError):
            return
        for topic, value in zip(COUNTERS, values, strict=True):
            self._counters[topic] = int(value or 0)
        self._version = f"{self._counters['config']}:{self._counters['keys']}"

    async def _rebuild(self) -> None:
        try:
            self._snapshot = await self._load(self._counters["config"])
        except DatabaseError as exc:
            seldom.warning("gateway.snapshot_not_rebuilt", error=type(exc).__name__)
            return
        self._rebuilt_at = time.monotonic()
        log.debug("gateway.snapshot_rebuilt", routes=len(self._snapshot.routes))

"""Everything that the gateway keeps for one event loop, made at start-up and closed at the end."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import structlog
from django.conf import settings
from redis.exceptions import RedisError

from apps.gateway import ports
from apps.gateway.admission.batcher import RedisAwayError, ScriptBatcher, redis_client
from apps.gateway.admission.gate import Gate
from apps.gateway.breakers import Breakers
from apps.gateway.cooling import Cooling
from apps.gateway.frames import Frames
from apps.gateway.keyring import KeyRing
from apps.gateway.quotas import BudgetRow
from apps.gateway.refresh import SnapshotKeeper
from apps.gateway.snapshot import KeyRow, Snapshot
from apps.gateway.upstream import Upstream
from apps.gateway.waiting import WaitingRoom

log = structlog.get_logger(__name__)

Answered = TypeVar("Answered")
_CLOSE_SECONDS = 5.0
_RESTART_SECONDS = 1.0


class Runtime:
    """Start it inside the event loop that it serves; `stop` settles what is under way."""

    def __init__(self) -> None:
        timeout = settings.GATEWAY_REDIS_TIMEOUT_MILLISECONDS / 1000
        # One thread, so one connection to Postgres a worker.
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="gateway-ports")
        self._client = redis_client(settings.REDIS_URL, timeout_seconds=1.0)
        self._batcher = ScriptBatcher(
            redis_client(settings.REDIS_URL, timeout_seconds=timeout), timeout_seconds=timeout
        )
        self.upstream = Upstream()
        self.breakers = Breakers(time.monotonic)
        self.cooling = Cooling(self.breakers)
        self.waiting = WaitingRoom()
        self.gate = Gate(self._batcher, self._load_spent)
        self.keeper = SnapshotKeeper(self._client, self._load_snapshot)
        self.keyring = KeyRing(self._client, self._load_key, lambda: self.keeper.version)
        self.frames = Frames(self._client, f"{socket.gethostname()}:{os.getpid()}")
        self._tasks: set[asyncio.Task[None]] = set()
        self._endings: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Read the snapshot once and begin to keep everything fresh."""
        await self.keeper.refresh()
        for keep in (
            self.keeper.keep,
            self.keeper.listen,
            self._batcher.watch,
            self.gate.keep,
            self.gate.make_good,
            self.frames.keep,
        ):
            self._tasks.add(asyncio.create_task(_forever(keep)))
        log.info("gateway.started")

    async def stop(self) -> None:
        """Settle what can be settled within seconds, then close every connection."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*self._endings)
                await self.gate.flush()
                await self.frames.flush()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.upstream.close()
        await self._batcher.close()
        await self._client.aclose()
        await self._in_thread(ports.close)
        self._threads.shutdown(wait=True)

    def background(self, ending: Coroutine[Any, Any, None]) -> None:
        """Run the end of a request whose own task is gone; `stop` waits for it."""
        task = asyncio.get_running_loop().create_task(ending)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _in_thread(self, question: Callable[[], Answered]) -> Answered:
        return await asyncio.get_running_loop().run_in_executor(self._threads, question)

    async def _load_snapshot(self, version: int) -> Snapshot:
        return await self._in_thread(partial(ports.load_snapshot, version))

    async def _load_key(self, digest: str) -> KeyRow | None:
        return await self._in_thread(partial(ports.load_key, digest))

    async def _load_spent(self, budget: BudgetRow, since: datetime) -> int:
        question = ports.load_overflow_spent if budget.is_overflow else ports.load_spent
        try:
            return await self._in_thread(partial(question, budget.id, since))
        except RedisError as exc:  # events that wait in its stream count, too
            raise RedisAwayError from exc


async def _forever(keep: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a loop, and run it again when it breaks: a worker without it would decay silently."""
    while True:
        try:
            await keep()
        except Exception:
            log.exception("gateway.loop_broken", loop=keep.__qualname__)
        await asyncio.sleep(_RESTART_SECONDS)

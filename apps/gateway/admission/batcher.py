"""Scripts of all requests of an event loop, sent to Redis together.

What is asked for while one batch is under way goes out with the next, so under load a call costs a
fraction of a round trip. When Redis does not answer in time, everything that waits fails at once,
and so does what comes after, until a probe in the background is answered.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis.asyncio
import structlog
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from apps.core.errors import NoCapacityError
from apps.gateway.admission.scripts import ScriptName, script
from apps.gateway.seldom import SeldomLog

log = structlog.get_logger(__name__)
seldom = SeldomLog(log)

Argument = str | bytes | int
_MAX_BATCH = 200
_PROBE_SECONDS = 0.1
_SIGN_OF_LIFE_SECONDS = 0.25
_MISSES_OF_A_LOSS = 3


class RedisAwayError(NoCapacityError):
    """Redis does not answer, so nothing can be admitted; nothing was promised to the caller."""

    def __init__(self) -> None:
        super().__init__(
            "limits and budgets cannot be checked at the moment; try again in a second",
            code="admission_unavailable",
            retry_after_seconds=1,
        )


@dataclass(slots=True)
class _Asked:
    name: ScriptName
    arguments: Sequence[Argument]
    answer: "asyncio.Future[Any]"


def redis_client(url: str, *, timeout_seconds: float) -> redis.asyncio.Redis:
    """A client that never sends a command twice by itself: a script may have run."""
    return redis.asyncio.Redis.from_url(
        url,
        socket_connect_timeout=timeout_seconds,
        socket_timeout=None,
        retry=Retry(NoBackoff(), 0),
    )


class ScriptBatcher:
    """Runs scripts for one event loop."""

    def __init__(self, client: redis.asyncio.Redis, *, timeout_seconds: float) -> None:
        self._client = client
        self._timeout_seconds = timeout_seconds
        self._waiting: list[_Asked] = []
        self._sender: asyncio.Task[None] | None = None
        self._probe: asyncio.Task[None] | None = None

    @property
    def is_away(self) -> bool:
        """True from the first call that was not answered to the first probe that was."""
        return self._probe is not None

    async def run(self, name: ScriptName, *arguments: Argument) -> Any:
        """What the script returns. Raises RedisAwayError; the script may have run all the same."""
        if self._probe is not None:
            raise RedisAwayError
        loop = asyncio.get_running_loop()
        asked = _Asked(name, arguments, loop.create_future())
        self._waiting.append(asked)
        if self._sender is None:
            self._sender = loop.create_task(self._send_all())
        return await asked.answer

    async def watch(self) -> None:
        """Ask for a sign of life for ever; run it as a task.

        A Redis that hangs is known soon, so that hardly a request has to wait for it to time out.
        """
        misses = 0
        while True:
            await asyncio.sleep(_PROBE_SECONDS)
            if self._probe is not None:
                misses = 0
                continue
            misses = 0 if await self._answers() else misses + 1
            if misses == _MISSES_OF_A_LOSS and self._probe is None:
                self._lose([], TimeoutError())

    async def close(self) -> None:
        """Stop; what still waits fails."""
        for task in (self._sender, self._probe):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self._client.aclose()

    async def _send_all(self) -> None:
        batch: list[_Asked] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_MAX_BATCH], self._waiting[_MAX_BATCH:]
                await self._send(batch)
        except (RedisError, OSError, TimeoutError) as exc:
            self._lose(batch, exc)
        finally:
            self._sender = None

    async def _send(self, batch: list[_Asked]) -> None:
        answers = await self._patiently(batch)
        for asked, answer in zip(batch, answers, strict=True):
            if isinstance(answer, NoScriptError):
                answer = await self._load(asked)
            _resolve(asked, answer)

    async def _patiently(self, batch: list[_Asked]) -> list[Any]:
        """Wait no longer than allowed, unless it is we who were late to look."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        sent = asyncio.ensure_future(self._pipeline(batch))
        try:
            done, _pending = await asyncio.wait({sent}, timeout=self._timeout_seconds)
            if not done and loop.time() - started > 2 * self._timeout_seconds:
                done, _pending = await asyncio.wait({sent}, timeout=self._timeout_seconds)
        except asyncio.CancelledError:
            sent.cancel()
            raise
        if not done:
            sent.cancel()
            raise TimeoutError
        return sent.result()

    async def _pipeline(self, batch: list[_Asked]) -> list[Any]:
        pipe = self._client.pipeline(transaction=False)
        for asked in batch:
            pipe.execute_command("EVALSHA", script(asked.name).digest, 0, *asked.arguments)
        return await pipe.execute(raise_on_error=False)

    async def _load(self, asked: _Asked) -> Any:
        """Run with the source: a new Redis does not know the script yet."""
        async with asyncio.timeout(self._timeout_seconds):
            return await self._client.eval(script(asked.name).source, 0, *asked.arguments)

    def _lose(self, batch: list[_Asked], exc: Exception) -> None:
        """Redis is away: fail `batch` and everything that waits, and probe until it is back."""
        if self._probe is None:
            log.warning("gateway.redis_lost", error=type(exc).__name__)
            self._probe = asyncio.get_running_loop().create_task(self._probe_until_back())
        batch, self._waiting = batch + self._waiting, []
        for asked in batch:
            _resolve(asked, RedisAwayError())

    async def _probe_until_back(self) -> None:
        is_back = False
        while not is_back:
            await asyncio.sleep(_PROBE_SECONDS)
            is_back = await self._answers()
        self._probe = None
        log.info("gateway.redis_back")

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(_SIGN_OF_LIFE_SECONDS):
                await self._client.ping()
        except (RedisError, OSError, TimeoutError):
            return False
        return True


def _resolve(asked: _Asked, answer: Any) -> None:
    if asked.answer.done():  # its request was cancelled
        return
    if isinstance(answer, RedisAwayError):
        asked.answer.set_exception(answer)
    elif isinstance(answer, Exception):  # Redis is loading, full, or read-only
        seldom.warning("gateway.script_failed", script=asked.name, error=str(answer)[:200])
        asked.answer.set_exception(RedisAwayError())
    else:
        asked.answer.set_result(answer)

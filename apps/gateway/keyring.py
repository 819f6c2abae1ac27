"""Keys: a bounded memory in front of Redis in front of Postgres.

What is held in memory or in Redis is good for one version of the installation (the counters of
`apps.core.changes`) and for half a minute, whichever ends first. So a revoked key is refused as
soon as a worker has seen the counter move, and half a minute later even if it never does.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
import redis.asyncio
import structlog
from django.db import DatabaseError
from redis.exceptions import RedisError

from apps.core.errors import NoCapacityError
from apps.gateway.quotas import BudgetRow, LimitRow, Scope
from apps.gateway.seldom import SeldomLog
from apps.gateway.snapshot import KeyRow
from apps.keys.periods import Schedule
from apps.keys.rules import networks_of

seldom = SeldomLog(structlog.get_logger(__name__))

_MAX_KEYS = 20_000
_MAX_UNKNOWN = 10_000
_MAX_LOADS = 4
_AGE_SECONDS = 30.0
_REDIS_SECONDS = 0.5
_POSTGRES_SECONDS = 2.0

LoadKey = Callable[[str], Awaitable[KeyRow | None]]


@dataclass(frozen=True, slots=True)
class _Held:
    """A key (`None`: there is none) as of a version, held until a monotonic moment."""

    key: KeyRow | None
    version: str
    until: float


class KeyRing:
    """Finds keys by digest for one event loop."""

    def __init__(
        self, client: redis.asyncio.Redis, load: LoadKey, version: Callable[[], str]
    ) -> None:
        self._client = client
        self._load = load
        self._version = version
        self._known: OrderedDict[str, _Held] = OrderedDict()
        self._unknown: OrderedDict[str, _Held] = OrderedDict()
        self._loading: dict[str, asyncio.Future[KeyRow | None]] = {}
        self._loads = asyncio.Semaphore(_MAX_LOADS)

    def _held(self, digest: str) -> _Held | None:
        """What memory holds and may still be used; `None` when it must be looked up."""
        held = self._known.get(digest) or self._unknown.get(digest)
        if held is None or held.version != self._version() or held.until < time.monotonic():
            return None
        return held

    async def find(self, digest: str) -> KeyRow | None:
        """The key of that digest, in whatever state; `None` when there is none.

        Raises NoCapacityError when it is not in memory and Postgres does not answer.
        """
        held = self._held(digest)
        if held is not None:
            return held.key
        loading = self._loading.get(digest)
        if loading is None:
            loading = asyncio.ensure_future(self._look_up(digest))
            self._loading[digest] = loading
            loading.add_done_callback(lambda _done: self._loading.pop(digest))
        return await asyncio.shield(loading)

    async def _look_up(self, digest: str) -> KeyRow | None:
        version = self._version()
        async with self._loads:
            key = await self._from_redis(digest, version)
            if key is None:
                key = await self._from_postgres(digest, version)
        self._hold(digest, _Held(key, version, time.monotonic() + _AGE_SECONDS))
        return key

    def _hold(self, digest: str, held: _Held) -> None:
        shelf, room = (
            (self._unknown, _MAX_UNKNOWN) if held.key is None else (self._known, _MAX_KEYS)
        )
        (self._known if held.key is None else self._unknown).pop(digest, None)
        shelf[digest] = held
        shelf.move_to_end(digest)
        while len(shelf) > room:
            shelf.popitem(last=False)

    async def _from_redis(self, digest: str, version: str) -> KeyRow | None:
        with contextlib.suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(_REDIS_SECONDS):
                text = await self._client.get(_redis_key(digest))
            if text is not None:
                return _unpacked(text, version)
        return None

    async def _from_postgres(self, digest: str, version: str) -> KeyRow | None:
        try:
            key = await self._loaded(digest)
        except (DatabaseError, TimeoutError) as exc:
            stale = self._known.get(digest)
            if stale is not None:  # better an old truth than none
                return stale.key
            seldom.warning("gateway.key_not_loaded", error=type(exc).__name__)
            raise NoCapacityError(
                "keys cannot be checked at the moment; try again in a few seconds",
                code="keys_unavailable",
                retry_after_seconds=5,
            ) from exc
        if key is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with asyncio.timeout(_REDIS_SECONDS):
                    packed = _packed(key, version)
                    await self._client.set(_redis_key(digest), packed, ex=int(_AGE_SECONDS))
        return key

    async def _loaded(self, digest: str) -> KeyRow | None:
        """What Postgres says; raises TimeoutError when it hangs.

        A thread that waits for it cannot be cancelled, so it is left behind and ends by itself.
        """
        loading = asyncio.ensure_future(self._load(digest))
        done, _waiting = await asyncio.wait({loading}, timeout=_POSTGRES_SECONDS)
        if not done:
            loading.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise TimeoutError
        return loading.result()


def _redis_key(digest: str) -> str:
    return f"inferadmin.gateway.key:{digest}"


def _packed(key: KeyRow, version: str) -> bytes:
    return orjson.dumps({"version": version, "key": key}, default=_plain)


def _plain(value: Any) -> Any:
    """What JSON has no form for: sets of ids, and networks."""
    return sorted(value) if isinstance(value, frozenset) else str(value)


def _unpacked(text: bytes | str, version: str) -> KeyRow | None:
    raw = orjson.loads(text)
    if raw["version"] != version:
        return None
    key = raw["key"]
    routes = key["route_ids"]
    return KeyRow(
        **{
            **key,
            "expires_at": _moment(key["expires_at"]),
            "revoked_at": _moment(key["revoked_at"]),
            "route_ids": None if routes is None else frozenset(routes),
            "networks": networks_of(key["networks"]),
            "limits": tuple(_limit(row) for row in key["limits"]),
            "budgets": tuple(_budget(row) for row in key["budgets"]),
        }
    )


def _limit(row: dict[str, Any]) -> LimitRow:
    return LimitRow(kind=row["kind"], value=row["value"], scope=Scope(**row["scope"]))


def _budget(row: dict[str, Any]) -> BudgetRow:
    schedule = row["schedule"]
    return BudgetRow(
        **{
            **row,
            "scope": Scope(**row["scope"]),
            "warn_percents": tuple(row["warn_percents"]),
            "raised_until": _moment(row["raised_until"]),
            "schedule": Schedule(
                **{
                    **schedule,
                    "created_at": datetime.fromisoformat(schedule["created_at"]),
                    "reset_at": _moment(schedule["reset_at"]),
                }
            ),
        }
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)

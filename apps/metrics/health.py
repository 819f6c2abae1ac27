"""Is the product itself well? Each look takes a second at most, whatever has stopped answering.

A hung Postgres or Redis leaves no thread behind: the looks are asynchronous and are cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from time import time
from typing import Any, TypeVar

import psycopg
import redis.asyncio
from django.conf import settings
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from psycopg.conninfo import make_conninfo

from apps.metrics.names import LEDGER_GROUP, LEDGER_STREAM
from apps.metrics.pulse import KEY as PULSE
from apps.metrics.pulse import Beat, beats_from

T = TypeVar("T")

CHECK_SECONDS = 1.0
# Tasks of telemetry run each second; after this the worker or beat has stopped.
SILENT_SECONDS = 15.0
# The ledger is drained each second; an event that waits longer is not seen in usage yet.
LEDGER_LATE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """What waits in the stream of usage events: how many, of them read but not yet written, and
    since when the oldest waits (seconds)."""

    waiting: int = 0
    pending: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SystemState:
    """What works. An error is a code, "" when all is well: `timeout` or the exception's name."""

    at: float
    postgres_error: str = ""
    redis_error: str = ""
    # Migrations that this release has and the database has not, as "app.name".
    missing_migrations: tuple[str, ...] = ()
    # The last run of each telemetry task; a task that never ran is missing.
    beats: Mapping[str, Beat] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def is_ready(self) -> bool:
        """True when requests can be served as they should."""
        return not (self.postgres_error or self.redis_error or self.missing_migrations)

    def age_seconds(self, job: str) -> float | None:
        """Time since `job` ran last; `None` when it never did or Redis does not tell."""
        beat = self.beats.get(job)
        return None if beat is None else max(0.0, self.at - beat.at)

    @property
    def problems(self) -> list[str]:
        """Codes of what a person should know, the worst first; [] when all is well."""
        age = self.age_seconds("fold")
        is_silent = age is None or age > SILENT_SECONDS
        found = {
            "postgres_away": bool(self.postgres_error),
            "redis_away": bool(self.redis_error),
            "migrations_missing": bool(self.missing_migrations),
            "worker_silent": not self.redis_error and is_silent,
            "ledger_late": self.ledger.oldest_seconds > LEDGER_LATE_SECONDS,
        }
        return [code for code, is_so in found.items() if is_so]


async def look() -> SystemState:
    """Look at Postgres and Redis, both at once. Never raises."""
    postgres, redis_side = await asyncio.gather(
        _bounded(_look_at_postgres), _bounded(_look_at_redis)
    )
    missing, postgres_error = postgres
    seen, redis_error = redis_side
    beats, ledger = seen if seen is not None else ({}, Ledger())
    return SystemState(
        at=time(),
        postgres_error=postgres_error,
        redis_error=redis_error,
        missing_migrations=missing or (),
        beats=beats,
        ledger=ledger,
    )


async def _bounded(check: Callable[[], Awaitable[T]]) -> tuple[T | None, str]:
    """What the check gave and "", or `None` and what went wrong."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check(), ""
    except TimeoutError:
        return None, "timeout"
    except (psycopg.Error, redis.RedisError, OSError) as exc:
        return None, type(exc).__name__


async def _look_at_postgres() -> tuple[str, ...]:
    """Migrations that are missing. A connection of its own, since a pooled one may hang."""
    async with await psycopg.AsyncConnection.connect(_conninfo(), autocommit=True) as connection:
        cursor = await connection.execute("SELECT app, name FROM django_migrations")
        applied = {tuple(row) for row in await cursor.fetchall()}
    return tuple(f"{app}.{name}" for app, name in sorted(_known_migrations() - applied))


def _conninfo() -> str:
    database = connections["default"].settings_dict
    return make_conninfo(
        dbname=database["NAME"],
        user=database["USER"],
        password=database["PASSWORD"],
        host=database["HOST"],
        port=database["PORT"],
        application_name="inferadmin health",
    )


@lru_cache(maxsize=1)
def _known_migrations() -> frozenset[tuple[str, str]]:
    """All migrations of this release; files do not change while it runs."""
    loader = MigrationLoader(None)
    return frozenset(loader.disk_migrations or ())


async def _look_at_redis() -> tuple[dict[str, Beat], Ledger]:
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL)
    try:
        pipe = client.pipeline(transaction=False)
        pipe.hgetall(PULSE)
        pipe.xlen(LEDGER_STREAM)
        pipe.xrange(LEDGER_STREAM, count=1)
        pipe.xinfo_groups(LEDGER_STREAM)
        beats, waiting, oldest, groups = await pipe.execute(raise_on_error=False)
    finally:
        await client.aclose()
    if isinstance(beats, redis.RedisError):
        raise beats
    return beats_from(beats), _ledger(waiting, oldest, groups)


def _ledger(waiting: int, oldest: list[Any], groups: list[dict[str, Any]] | Exception) -> Ledger:
    """`groups` is an error as long as nothing was ever billed: there is no stream then."""
    if not waiting or isinstance(groups, Exception):
        return Ledger(waiting=waiting)
    since = int(oldest[0][0].split(b"-")[0]) / 1000
    pending = [group["pending"] for group in groups if group["name"].decode() == LEDGER_GROUP]
    return Ledger(waiting=waiting, pending=sum(pending), oldest_seconds=max(0.0, time() - since))

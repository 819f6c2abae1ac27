"""Which topics somebody watches right now, so that ticks are made for those only."""

from collections.abc import Iterable
from time import time
from typing import cast

from apps.core.redis import connection

_WATCHED = "inferadmin.metrics.watched"
# A socket says so again at each of its heartbeats.
WATCH_SECONDS = 30


def watch(topics: Iterable[str]) -> None:
    """Say that somebody watches `topics` for the next WATCH_SECONDS. Raises RedisError."""
    until = time() + WATCH_SECONDS
    connection().zadd(_WATCHED, dict.fromkeys(topics, until))


def watched() -> set[str]:
    """Topics with at least one watcher. Raises RedisError."""
    pipe = connection().pipeline(transaction=False)
    pipe.zremrangebyscore(_WATCHED, 0, time())
    pipe.zrange(_WATCHED, 0, -1)
    _removed, names = pipe.execute()
    return {name.decode() for name in cast(list[bytes], names)}

"""Connections to Redis (or Valkey) for code that is not asynchronous."""

from functools import lru_cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry


@lru_cache(maxsize=1)
def connection() -> redis.Redis:
    """The process's shared client: thread-safe, gives up after some four seconds.

    One retry, at once, replaces a pooled connection that a restart has broken. redis-py's own
    default is three with pauses: 3 s until a closed port is noticed, 15 s for a Redis that hangs.
    """
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=2,
        socket_timeout=2,
        health_check_interval=30,
        retry=Retry(NoBackoff(), 1),
    )

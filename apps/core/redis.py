"""Connections to Redis (or Valkey) for code that is not asynchronous."""

from functools import lru_cache

import redis
from django.conf import settings


@lru_cache(maxsize=1)
def connection() -> redis.Redis:
    """The process's shared client: thread-safe, two seconds to connect and to answer."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=2,
        socket_timeout=5,
        health_check_interval=30,
    )

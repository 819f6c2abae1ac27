"""Keeping two runs of the same task apart."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from redis.exceptions import LockError

from apps.core.redis import connection

log = structlog.get_logger(__name__)


@contextmanager
def one_at_a_time(job: str, *, seconds: int) -> Iterator[bool]:
    """True for the only run of `job`, False for one that comes while it is on.

    After `seconds` the next run may start whatever became of this one, as when its worker was
    killed. Raises RedisError.
    """
    lock = connection().lock(f"inferadmin.metrics.lock.{job}", timeout=seconds, blocking=False)
    if not lock.acquire():
        yield False
        return
    try:
        yield True
    finally:
        try:
            lock.release()
        except LockError:
            log.warning("metrics.lock_outlived", job=job, seconds=seconds)

"""Signs of life of the telemetry tasks, kept in Redis."""

from dataclasses import dataclass
from time import time
from typing import Literal, cast

import orjson

from apps.core.redis import connection

Job = Literal["sweep", "fold"]
KEY = "inferadmin.metrics.pulse"


@dataclass(frozen=True, slots=True)
class Beat:
    """The last run of a task: when it ended (seconds since 1970) and how long it took."""

    at: float
    seconds: float


def beat(job: Job, *, seconds: float) -> None:
    """Note that `job` has run just now. Raises RedisError."""
    connection().hset(KEY, job, orjson.dumps([time(), seconds]).decode())


def beats() -> dict[str, Beat]:
    """The last run of each task that ever ran. Raises RedisError."""
    return beats_from(cast(dict[bytes, bytes], connection().hgetall(KEY)))


def beats_from(raw: dict[bytes, bytes]) -> dict[str, Beat]:
    """The same out of the fields of the hash KEY, for who reads it by another client."""
    return {job.decode(): Beat(*orjson.loads(value)) for job, value in raw.items()}

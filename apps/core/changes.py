"""Telling gateway workers that what they hold in memory has changed.

A change bumps a counter in Redis and publishes its topic, after the transaction has committed.
Workers listen, and poll the counters each second, so that a lost message costs a second at most.
"""

from typing import Literal

import redis
import structlog
from django.db import transaction

from apps.core.redis import connection

log = structlog.get_logger(__name__)

Topic = Literal["config", "keys"]

CHANNEL = "inferadmin.changes"
COUNTERS: dict[Topic, str] = {
    "config": "inferadmin.version.config",
    "keys": "inferadmin.version.keys",
}


def announce_on_commit(topic: Topic) -> None:
    """After commit, make every gateway worker read `topic` again within two seconds.

    `config`: routes, targets, prices, limits, what is ready. `keys`: keys and teams.
    When Redis is away the row is saved all the same; workers re-read by themselves every 30 s.
    """
    transaction.on_commit(lambda: _announce(topic))


def _announce(topic: Topic) -> None:
    try:
        pipe = connection().pipeline(transaction=False)
        pipe.incr(COUNTERS[topic])
        pipe.publish(CHANNEL, topic)
        pipe.execute()
    except redis.RedisError as exc:
        log.warning("core.change_not_announced", topic=topic, error=type(exc).__name__)

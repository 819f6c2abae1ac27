"""What beat starts: reading servers, folding the gateway's numbers, looking after the table."""

from collections.abc import Callable
from functools import wraps

import redis
import structlog
from celery import shared_task
from django.db import DatabaseError

from apps.metrics.services import fold, partitions, sweep

log = structlog.get_logger(__name__)


def _quiet_outage(task: Callable[[], object]) -> Callable[[], None]:
    """One log line instead of a traceback each second while Redis or Postgres is away.

    Nothing is retried: the next run is a second or two off.
    """

    @wraps(task)
    def run() -> None:
        try:
            task()
        except (redis.RedisError, DatabaseError) as exc:
            log.warning("metrics.task_skipped", task=task.__name__, error=type(exc).__name__)

    return run


@shared_task(name="metrics.sweep_servers")
@_quiet_outage
def sweep_servers() -> None:
    """Read the metrics pages that are due."""
    sweep.servers_sweep()


@shared_task(name="metrics.fold_gateway")
@_quiet_outage
def fold_gateway() -> None:
    """Turn the gateway's past seconds into samples and ticks."""
    fold.gateway_fold()


@shared_task(name="metrics.maintain_samples")
@_quiet_outage
def maintain_samples() -> None:
    """Make the next days' partitions, drop the oldest."""
    partitions.partitions_maintain()

"""Celery entry of the ledger."""

import redis
import structlog
from celery import shared_task
from django.db import InterfaceError, OperationalError

from apps.billing.services import counters, ledger

log = structlog.get_logger(__name__)

# Well under the broker's visibility timeout; the next beat goes on where this run ends.
RUN_SECONDS = 20


@shared_task(name="billing.drain_ledger")
def drain_ledger() -> int:
    """Number of records written; 0 while Postgres or Redis is away, and the events wait."""
    try:
        return ledger.ledger_drain(seconds=RUN_SECONDS)
    except (OperationalError, InterfaceError, redis.RedisError) as exc:
        log.warning("billing.ledger_waits", error=type(exc).__name__)
        return 0


@shared_task(name="billing.mend_counters")
def mend_counters() -> int:
    """Number of budget counters that were wrong; 0 while Postgres or Redis is away."""
    try:
        return counters.counters_mend()
    except (OperationalError, InterfaceError, redis.RedisError) as exc:
        log.warning("billing.counters_wait", error=type(exc).__name__)
        return 0

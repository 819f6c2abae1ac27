"""What workers do for the fleet: look at servers, and move operations on."""

import structlog
from celery import shared_task
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from apps.core.redis import connection
from apps.fleet.services import control, observation

log = structlog.get_logger(__name__)


@shared_task(name="fleet.observe_servers")
def observe_servers() -> None:
    """Look at every server that is due; safe to run many at once."""
    observation.servers_observe()


@shared_task(name="fleet.advance_operations")
def advance_operations() -> None:
    """Take every open operation one step further; safe to run at any time and many at once."""
    control.operations_advance()


def nudge() -> None:
    """Have a worker look at the open operations now instead of within a second. Never raises.

    The ping costs little and finds a closed port at once; Celery alone needs six seconds for it.
    """
    try:
        connection().ping()
        advance_operations.apply_async(retry=False, expires=2)
    except (RedisError, OperationalError) as exc:
        log.warning("fleet.nudge_failed", error=type(exc).__name__)

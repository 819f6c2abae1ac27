"""What workers do for the fleet: look at servers, and move operations on."""

import structlog
from celery import shared_task
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)


@shared_task(name="fleet.advance_operations")
def advance_operations() -> None:
    """Move every open operation one step on; safe to run at any time and many at once."""


def nudge() -> None:
    """Have a worker look at the open operations now instead of within a second. Never raises."""
    try:
        advance_operations.apply_async(retry=False, expires=2)
    except OperationalError as exc:
        log.warning("fleet.nudge_failed", error=type(exc).__name__)

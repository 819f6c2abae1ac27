"""When the period of a budget begins and ends, in the installation's own time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings

from apps.keys.models import Budget


@dataclass(frozen=True, slots=True)
class Window:
    """From `start` up to but without `end`, both UTC; `end` is `None` where nothing starts anew."""

    start: datetime
    end: datetime | None


def window_of(budget: Budget, moment: datetime) -> Window:
    """The period of the budget that `moment` falls into."""
    return period_window(budget.period, budget.created_at, moment)


def period_window(period: str, created_at: datetime, moment: datetime) -> Window:
    """The period of that kind (`Budget.Period`) that `moment` falls into.

    Days begin at midnight in `TIME_ZONE` and weeks on Monday, also where clocks are set that day.
    A budget without a period begins when it was made.
    """
    if period == Budget.Period.NEVER:
        return Window(created_at, None)
    if period == Budget.Period.HOUR:
        start = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return Window(start, start + timedelta(hours=1))
    first, after = _days(period, moment.astimezone(_zone()))
    return Window(first.astimezone(UTC), after.astimezone(UTC))


def _zone() -> ZoneInfo:
    return ZoneInfo(settings.TIME_ZONE)


def _days(period: str, local: datetime) -> tuple[datetime, datetime]:
    """Local midnights of the first day, and of the first day after; wall-clock arithmetic."""
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if period == Budget.Period.MONTH:
        first = midnight.replace(day=1)
        return first, (first + timedelta(days=32)).replace(day=1)
    if period == Budget.Period.WEEK:
        first = midnight - timedelta(days=midnight.weekday())
        return first, first + timedelta(days=7)
    return midnight, midnight + timedelta(days=1)

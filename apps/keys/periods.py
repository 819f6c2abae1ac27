"""When the period of a budget begins and ends, in the budget's own time zone."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings

from apps.keys.models import Budget
from apps.keys.rules import zone_of


@dataclass(frozen=True, slots=True)
class Window:
    """From `start` up to but without `end`, both UTC; `end` is `None` where nothing starts anew."""

    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a budget's time is cut: `period` is a `Budget.Period`, `week_start` 0 for Monday.

    `time_zone` "" is the installation's.
    """

    period: str
    created_at: datetime
    time_zone: str = ""
    week_start: int = 0
    reset_at: datetime | None = None

    @classmethod
    def of(cls, budget: Budget) -> "Schedule":
        """The schedule of a row."""
        return cls(
            period=budget.period,
            created_at=budget.created_at,
            time_zone=budget.time_zone,
            week_start=budget.week_start,
            reset_at=budget.reset_at,
        )

    def window(self, moment: datetime) -> Window:
        """The period that `moment` falls into, without what was before a reset.

        Days begin at local midnight, also where clocks are set that day. A budget without a period
        begins when it was made.
        """
        start, end = self._period(moment)
        if self.reset_at is not None and self.reset_at > start:
            start = self.reset_at
        return Window(start, end)

    def _period(self, moment: datetime) -> tuple[datetime, datetime | None]:
        if self.period == Budget.Period.NEVER:
            return self.created_at, None
        local = moment.astimezone(zone_of(self.time_zone, settings.TIME_ZONE))
        if self.period == Budget.Period.HOUR:
            into = timedelta(
                minutes=local.minute, seconds=local.second, microseconds=local.microsecond
            )
            start = moment.astimezone(UTC) - into
            return start, start + timedelta(hours=1)
        first, after = self._days(local)
        return first.astimezone(UTC), after.astimezone(UTC)

    def _days(self, local: datetime) -> tuple[datetime, datetime]:
        """Local midnights of the first day, and of the first day after; wall-clock arithmetic."""
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        if self.period == Budget.Period.MONTH:
            first = midnight.replace(day=1)
            return first, (first + timedelta(days=32)).replace(day=1)
        if self.period == Budget.Period.WEEK:
            first = midnight - timedelta(days=(midnight.weekday() - self.week_start) % 7)
            return first, first + timedelta(days=7)
        return midnight, midnight + timedelta(days=1)


def window_of(budget: Budget, moment: datetime) -> Window:
    """The period of the budget that `moment` falls into."""
    return Schedule.of(budget).window(moment)

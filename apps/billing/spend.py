"""What was used and spent, read from the sums of each UTC day."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery, Sum

from apps.billing.models import DailyUsage, UsageRecord
from apps.core.money import from_picos
from apps.keys.models import ApiKey

_SUMMED = ("requests", "errors", "input_tokens", "output_tokens", "cost_picos")


@dataclass(frozen=True, slots=True)
class Used:
    """Sums over some days. `costs`: amount by currency; a currency without cost is left out."""

    requests: int = 0
    errors: int = 0
    tokens: int = 0
    costs: dict[str, Decimal] = field(default_factory=dict)

    def __add__(self, other: "Used") -> "Used":
        currencies = sorted({*self.costs, *other.costs})
        none = Decimal(0)
        return Used(
            requests=self.requests + other.requests,
            errors=self.errors + other.errors,
            tokens=self.tokens + other.tokens,
            costs={
                currency: self.costs.get(currency, none) + other.costs.get(currency, none)
                for currency in currencies
            },
        )

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Used":
        """The sums in one row of `_grouped`."""
        cost = from_picos(int(row["cost_picos"]))
        return cls(
            requests=row["requests"],
            errors=row["errors"],
            tokens=row["input_tokens"] + row["output_tokens"],
            costs={row["currency"]: cost} if cost else {},
        )


def _grouped(rows: QuerySet[DailyUsage], by: str) -> dict[Any, Used]:
    sums = {name: Sum(name) for name in _SUMMED}
    found: dict[Any, Used] = {}
    for row in rows.order_by().values(by, "currency").annotate(**sums):
        found[row[by]] = found.get(row[by], Used()) + Used.of(row)
    return found


def today() -> date:
    """The UTC day that the sums are kept by."""
    return datetime.now(UTC).date()


def routes_used_on(day: date) -> dict[Any, Used]:
    """What each route did on a UTC day, by route name; routes without a request are left out."""
    return _grouped(DailyUsage.objects.filter(day=day), "route_name")


def keys_used_since(day: date, key_ids: Iterable[int]) -> dict[Any, Used]:
    """What each of the keys used from a UTC day on, by key id; unused keys are left out."""
    return _grouped(DailyUsage.objects.filter(day__gte=day, key_id__in=key_ids), "key_id")


def teams_used_since(day: date, team_ids: Iterable[int]) -> dict[Any, Used]:
    """What each of the teams used from a UTC day on, by team id; unused teams are left out."""
    return _grouped(DailyUsage.objects.filter(day__gte=day, team_id__in=team_ids), "team_id")


def keys_last_used(key_ids: Iterable[int]) -> dict[int, datetime]:
    """When each of the keys made its last request, by key id; unused keys are left out."""
    newest = UsageRecord.objects.filter(key=OuterRef("pk")).order_by("-at").values("at")[:1]
    rows = ApiKey.objects.filter(pk__in=key_ids).annotate(last_used_at=Subquery(newest))
    return dict(rows.exclude(last_used_at=None).order_by().values_list("pk", "last_used_at"))


def usage_by_day(rows: QuerySet[DailyUsage], *, days: int) -> list[tuple[date, Used]]:
    """One item a UTC day up to today, oldest first; days without a request hold zeros."""
    last = today()
    first = last - timedelta(days=days - 1)
    found = _grouped(rows.filter(day__gte=first), "day")
    span = (first + timedelta(days=offset) for offset in range(days))
    return [(day, found.get(day, Used())) for day in span]

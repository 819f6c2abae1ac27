"""Questions about prices and what was spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Q, QuerySet, Sum

from apps.billing.models import RATES, DailyUsage, Price, UsageRecord
from apps.billing.pricing import PriceRow
from apps.core.money import per_million_to_picos, to_picos
from apps.keys.models import Budget
from apps.keys.selectors import ancestry_of


def price_row(price: Price) -> PriceRow:
    """The price in pico-units."""
    rates = rates_of(price)
    return PriceRow(
        id=price.pk,
        currency=price.currency,
        input_picos=per_million_to_picos(price.input_per_million),
        output_picos=per_million_to_picos(price.output_per_million),
        cached_input_picos=per_million_to_picos(rates.cached_input),
        cache_write_picos=per_million_to_picos(rates.cache_write),
        reasoning_picos=per_million_to_picos(rates.reasoning),
        request_picos=to_picos(price.per_request),
        image_picos=to_picos(price.per_image),
        # A millionth of a second and a millionth of the tokens: the same factor.
        compute_microsecond_picos=per_million_to_picos(price.per_compute_second),
    )


@dataclass(frozen=True, slots=True)
class PartRates:
    """What the parts of prompt and completion cost, per million tokens."""

    cached_input: Decimal
    cache_write: Decimal
    reasoning: Decimal


def rates_of(price: Price) -> PartRates:
    """Rates of the parts: their own, or those of what they are parts of."""

    def own(rate: Decimal | None, whole: Decimal) -> Decimal:
        return whole if rate is None else rate

    return PartRates(
        cached_input=own(price.cached_input_per_million, price.input_per_million),
        cache_write=own(price.cache_write_per_million, price.input_per_million),
        reasoning=own(price.reasoning_per_million, price.output_per_million),
    )


def prices_in_force(moment: datetime) -> QuerySet[Price]:
    """The price of each model and server at a moment, in one query."""
    newest = (
        Price.objects.filter(effective_from__lte=moment)
        .order_by("server_id", "upstream_model", "-effective_from")
        .distinct("server_id", "upstream_model")
    )
    return Price.objects.filter(pk__in=newest.values("pk")).select_related("server")


def prices_for_display() -> QuerySet[Price]:
    """All prices with their servers: by server and model, the latest first."""
    return Price.objects.select_related("server").order_by(
        "server__name", "upstream_model", "-effective_from", "-id"
    )


def prices_now(at: datetime) -> dict[tuple[int, str], PriceRow]:
    """Prices in force at a moment, by (server id, upstream model)."""
    return {
        (price.server_id, price.upstream_model): price_row(price) for price in prices_in_force(at)
    }


# A price over so many times the one before is most likely a slip of units.
PRICE_JUMP = 100


def price_jump_of(price: Price) -> str | None:
    """The rate of an unsaved price that is far above the one that holds; `None` when none is."""
    held = prices_in_force(price.effective_from).filter(
        server_id=price.server_id, upstream_model=price.upstream_model, currency=price.currency
    )
    for old in held:
        for name in RATES:
            before, after = getattr(old, name), getattr(price, name)
            if before and after and after > before * PRICE_JUMP:
                return name
    return None


# What daily sums can be grouped by → its column.
USAGE_GROUPS = {
    "day": "day",
    "team": "team_id",
    "key": "key_id",
    "route": "route_name",
    "server": "server_name",
    "model": "upstream_model",
}
_SUMMED = ("requests", "errors", "input_tokens", "output_tokens", "cost_picos")


def usage_sums(rows: QuerySet[DailyUsage], *, by: Sequence[str]) -> QuerySet[Any]:
    """Sums of daily rows: one dict a group of USAGE_GROUPS and currency, the latest day first."""
    columns = [USAGE_GROUPS[name] for name in by]
    order = [f"-{column}" if column == "day" else column for column in columns]
    grouped: QuerySet[Any] = (
        rows.order_by()
        .values(*columns, "currency")
        .annotate(**{name: Sum(name) for name in _SUMMED})
        .order_by(*order, "currency")
    )
    return grouped


def records_for_api() -> QuerySet[UsageRecord]:
    """All records with the names of team and key, in one query."""
    return UsageRecord.objects.select_related("team", "key")


def spent_picos(budget: Budget, since: datetime) -> int:
    """What the budget's holder spent in its currency since a moment, as the ledger has it.

    A key includes those that it replaced by rotation. Whole UTC days are read from the daily sums,
    the rest and routes, which may be renamed, from the records. Events that still wait in the
    stream are not in it.
    """
    records = UsageRecord.objects.filter(currency=budget.currency)
    if budget.route_id is not None:
        return _sum(records.filter(route_id=budget.route_id, at__gte=since))
    if budget.key_id is not None:
        holder = Q(key_id__in=ancestry_of(budget.key_id))
    else:
        holder = Q(team_id=budget.team_id)
    midnight = _midnight_from(since)
    days = DailyUsage.objects.filter(holder, currency=budget.currency, day__gte=midnight.date())
    return _sum(records.filter(holder, at__gte=since, at__lt=midnight)) + _sum(days)


def _midnight_from(moment: datetime) -> datetime:
    """The first UTC midnight that is not before the moment."""
    utc = moment.astimezone(UTC)
    midnight = datetime.combine(utc.date(), time(), UTC)
    return midnight if midnight == utc else midnight + timedelta(days=1)


def _sum(rows: QuerySet[UsageRecord] | QuerySet[DailyUsage]) -> int:
    return int(rows.order_by().aggregate(total=Sum("cost_picos"))["total"] or 0)

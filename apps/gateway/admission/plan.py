"""What a request wants to hold: windows, slots and budgets of its key, team and route."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from apps.gateway.snapshot import BudgetRow, LimitRow
from apps.keys.periods import Window, period_window

_PREFIX = "inferadmin.gateway."
_MAX_PERIODS = 10_000
_periods: dict[tuple[str, datetime | None], Window] = {}


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that a request may use.

    `costs`: worst-case pico-units by currency, over the targets that it may be sent to.
    """

    tokens: int
    costs: dict[str, int]


@dataclass(frozen=True, slots=True)
class Lost:
    """What is recorded when the worker dies with the request: event (JSON), cost, currency."""

    event: bytes
    cost_picos: int
    currency: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Limits and budgets in the order that the script sees them."""

    windows: tuple[LimitRow, ...]
    slots: tuple[LimitRow, ...]
    budgets: tuple[BudgetRow, ...]
    periods: tuple[Window, ...]
    demand: Demand
    now: datetime

    def to_json(self, lost: Lost) -> bytes:
        """The plan as `admit.lua` reads it and keeps it."""
        return orjson.dumps(
            {
                "windows": [self._window(limit) for limit in self.windows],
                "slots": [{"key": _key("slots", row), "limit": row.value} for row in self.slots],
                "budgets": [
                    {
                        "key": counter_key(budget, period),
                        "cost": str(self.demand.costs.get(budget.currency, 0)),
                        "amount": str(budget.amount_picos),
                        "currency": budget.currency,
                    }
                    for budget, period in zip(self.budgets, self.periods, strict=True)
                ],
                "lost": {
                    "event": lost.event.decode(),
                    "cost": str(lost.cost_picos),
                    "currency": lost.currency,
                },
            }
        )

    def _window(self, limit: LimitRow) -> dict[str, Any]:
        window: dict[str, Any] = {"key": _key("window", limit), "limit": limit.value}
        if limit.kind == "tpm":
            return {**window, "amount": self.demand.tokens, "tokens": True}
        return {**window, "amount": 1}


def plan_of(
    limits: Sequence[LimitRow], budgets: Iterable[BudgetRow], demand: Demand, now: datetime
) -> Plan:
    """Sort limits by how they are counted."""
    wanted = tuple(budgets)
    return Plan(
        windows=tuple(limit for limit in limits if limit.kind != "concurrency"),
        slots=tuple(limit for limit in limits if limit.kind == "concurrency"),
        budgets=wanted,
        periods=tuple(_period(budget, now) for budget in wanted),
        demand=demand,
        now=now,
    )


def _period(budget: BudgetRow, now: datetime) -> Window:
    """The running period; looked up anew when it has ended (zones make it dear to work out)."""
    kind = (budget.period, budget.created_at if budget.period == "never" else None)
    known = _periods.get(kind)
    if known is None or not known.start <= now or (known.end is not None and now >= known.end):
        if len(_periods) > _MAX_PERIODS:
            _periods.clear()
        known = _periods[kind] = period_window(budget.period, budget.created_at, now)
    return known


def counter_key(budget: BudgetRow, period: Window) -> str:
    """Where Redis counts a budget in a period."""
    return f"{_PREFIX}budget:{budget.id}:{period.start:%Y%m%dT%H%M}"


def _key(family: str, limit: LimitRow) -> str:
    return f"{_PREFIX}{family}:{limit.scope.kind}:{limit.scope.id}:{limit.kind}"

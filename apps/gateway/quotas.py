"""Limits and budgets as a worker holds them; what the scripts in Redis are told is made once."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from apps.keys.counters import PREFIX, budget_counter, overflow_counter
from apps.keys.models import Budget
from apps.keys.periods import Schedule, Window

ScopeKind = Literal["key", "team", "route"]
LimitKind = Literal["rpm", "tpm", "concurrency"]

_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Scope:
    """What a limit or budget holds for; `name` is for people."""

    kind: ScopeKind
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A cap on a rate (a minute) or on requests at once."""

    kind: LimitKind
    value: int
    scope: Scope
    # For the plan; one on tokens goes on with their number.
    wire: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        family = "slots" if self.kind == "concurrency" else "window"
        key = f"{PREFIX}{family}:{self.scope.kind}:{self.scope.id}:{self.kind}"
        ends = {"rpm": ',"amount":1}', "tpm": ',"tokens":true,"amount":', "concurrency": "}"}
        wire = f'{{"key":"{key}","limit":{self.value}{ends[self.kind]}'
        object.__setattr__(self, "wire", wire)


@dataclass(frozen=True, slots=True)
class Running:
    """A budget as it is from `since` to `until` (Unix seconds): its period and its amount."""

    window: Window
    since: float
    until: float
    key: str
    amount_picos: int
    # For the plan; goes on with the cost.
    wire: str


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """Money that may be spent in a period.

    `raised_picos` holds in place of `amount_picos` until `raised_until`. A budget that is not hard
    never refuses.
    """

    id: int
    amount_picos: int
    currency: str
    schedule: Schedule
    scope: Scope
    is_hard: bool = True
    warn_percents: tuple[int, ...] = ()
    raised_picos: int = 0
    raised_until: datetime | None = None
    # The hourly cap of a route's overflow; not a row of the table, so its id is the route's.
    is_overflow: bool = False
    _running: Running | None = field(init=False, default=None, compare=False, repr=False)

    def running(self, moment: datetime) -> Running:
        """How it is at a moment; worked out anew when that has changed (zones are dear)."""
        now, known = moment.timestamp(), self._running
        if known is None or not known.since <= now < known.until:
            known = self._run(moment)
            object.__setattr__(self, "_running", known)
        return known

    def _run(self, moment: datetime) -> Running:
        window = self.schedule.window(moment)
        start, end = window.start.timestamp(), window.end.timestamp() if window.end else _NEVER
        amount, since, until = self.amount_picos, start, end
        if self.raised_until is not None:
            raised_end = self.raised_until.timestamp()
            if moment.timestamp() < raised_end:
                amount, until = self.raised_picos, min(end, raised_end)
            else:
                since = max(start, raised_end)
        make_key = overflow_counter if self.is_overflow else budget_counter
        key = make_key(self.id, window.start)
        soft = "" if self.is_hard else ',"soft":true'
        wire = f'{{"key":"{key}","amount":"{amount}","currency":"{self.currency}"{soft},"cost":"'
        return Running(window, since, until, key, amount, wire)


@dataclass(frozen=True, slots=True)
class TargetSlot:
    """A place on a target, counted under `key`; `limit` 0 has always room and is not counted.

    `overflow` is the cap that must cover a request that takes this place.
    """

    key: str
    limit: int
    overflow: BudgetRow | None = None


def overflow_budget(scope: Scope, amount_picos: int, currency: str) -> BudgetRow:
    """What a route's overflow may cost in an hour."""
    schedule = Schedule(Budget.Period.HOUR, created_at=datetime.fromtimestamp(0, UTC))
    return BudgetRow(
        id=scope.id,
        amount_picos=amount_picos,
        currency=currency,
        schedule=schedule,
        scope=scope,
        is_overflow=True,
    )

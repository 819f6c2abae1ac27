"""What Redis counts of the budgets, held against the ledger."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from apps.billing.events import EVENT_FIELD, USAGE_STREAM
from apps.billing.models import UsageRecord
from apps.billing.selectors import spent_picos
from apps.core.money import from_picos
from apps.core.redis import connection
from apps.keys.counters import BUDGETS, HOLDS, budget_of_counter
from apps.keys.models import Budget
from apps.keys.selectors import ancestry_of

_PAGE = 5000
_LOOKS = 3

# What an event costs a budget, by the event's id.
Waiting = dict[UUID, int]


@dataclass(frozen=True, slots=True)
class Truth:
    """What a budget has spent since a moment: in the ledger, and in events on their way to it."""

    ledger: int
    waiting: int

    @property
    def picos(self) -> int:
        """Both together."""
        return self.ledger + self.waiting


@dataclass(frozen=True, slots=True)
class CounterCheck:
    """A counter of Redis beside the truth, in pico-units.

    Requests end while one looks, so it was read before (`used`) and after (`used_after`): it is
    right when the truth lies between. `running` is what running requests hold by their own plans.
    """

    budget: Budget
    since: datetime
    key: str
    used: int
    used_after: int
    held: int
    running: int
    truth: Truth

    @property
    def used_error(self) -> int:
        """Above zero by how much it counts too much, below zero too little."""
        if self.truth.picos > self.used_after:
            return self.used_after - self.truth.picos
        return max(0, self.used - self.truth.picos)

    @property
    def held_error(self) -> int:
        """As `used_error`, of what is held; exact, for both are read in one moment."""
        return self.held - self.running

    @property
    def amounts(self) -> dict[str, Decimal]:
        """For people, in the budget's currency: as counted, and as it should be."""
        return {
            "used": from_picos(self.used_after),
            "held": from_picos(self.held),
            "ledger": from_picos(self.truth.ledger),
            "waiting": from_picos(self.truth.waiting),
            "used_error": from_picos(self.used_error),
            "held_error": from_picos(self.held_error),
        }

    @property
    def is_right(self) -> bool:
        """True when nothing is to be mended."""
        return not self.used_error and not self.held_error


def spent_now(budget: Budget, since: datetime) -> int:
    """Pico-units spent on a budget since a moment, also by events that the ledger has not yet."""
    return _truth(budget, since, _events()).picos


def counters_checked() -> list[CounterCheck]:
    """Every budget counter in Redis beside the truth, by budget and moment."""
    client: Any = connection()
    keys = sorted(key.decode() for key in client.scan_iter(f"{BUDGETS}*", count=1000))
    known = Budget.objects.select_related("team", "key", "route").in_bulk(
        {found[0] for key in keys if (found := budget_of_counter(key))}
    )
    before, running = _read(client, keys)
    events = _events()
    checks = []
    for key in keys:
        found = budget_of_counter(key)
        if found is None or found[0] not in known:
            continue
        budget, since = known[found[0]], found[1]
        truth = _truth(budget, since, events)
        used, held = before[key]
        used_after = int(client.hget(key, "used") or 0)
        checks.append(
            CounterCheck(budget, since, key, used, used_after, held, running.get(key, 0), truth)
        )
    return checks


def counter_mend(check: CounterCheck) -> bool:
    """Correct a counter by what it is wrong by; true when it was.

    A correction adds, so it takes nothing from what requests count at the same moment.
    """
    if check.is_right:
        return False
    pipe = connection().pipeline(transaction=True)
    pipe.hincrby(check.key, "used", -check.used_error)
    pipe.hincrby(check.key, "held", -check.held_error)
    pipe.execute()
    return True


def _read(client: Any, keys: Sequence[str]) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Used and held of each counter, and what the plans of running requests hold, in one moment."""
    pipe = client.pipeline(transaction=True)
    pipe.hvals(HOLDS)
    for key in keys:
        pipe.hmget(key, "used", "held")
    holds, *states = pipe.execute()
    running: dict[str, int] = {}
    for hold in holds:
        _second, _taken, rest = hold.split(b" ", 2)
        plan = orjson.loads(rest.partition(b"\n")[0])
        for budget in plan["budgets"]:
            running[budget["key"]] = running.get(budget["key"], 0) + int(budget["cost"])
    counted = {
        key: (int(used or 0), int(held or 0))
        for key, (used, held) in zip(keys, states, strict=True)
    }
    return counted, running


def _events() -> list[dict[str, Any]]:
    """The usage events that wait in the stream."""
    client: Any = connection()
    found: list[dict[str, Any]] = []
    start = "-"
    while page := client.xrange(USAGE_STREAM, min=start, count=_PAGE):
        found += [orjson.loads(fields[EVENT_FIELD.encode()]) for _id, fields in page]
        if len(page) < _PAGE:
            break
        start = f"({page[-1][0].decode()}"
    return found


def _truth(budget: Budget, since: datetime, events: Sequence[dict[str, Any]]) -> Truth:
    """An event of which the record is written in between is counted once: then one looks again."""
    is_its = _filter_of(budget)
    waiting: Waiting = {
        UUID(event["id"]): event["cost_picos"]
        for event in events
        if event["cost_picos"]
        and event["currency"] == budget.currency
        and is_its(event)
        and datetime.fromisoformat(event["at"]) >= since
    }
    for _look in range(_LOOKS):
        written = _written(waiting)
        ledger = spent_picos(budget, since)
        if written == _written(waiting):
            break
    return Truth(ledger, sum(cost for id, cost in waiting.items() if id not in written))


def _written(waiting: Waiting) -> set[UUID]:
    if not waiting:
        return set()
    return set(UsageRecord.objects.filter(pk__in=waiting).values_list("pk", flat=True))


def _filter_of(budget: Budget) -> Callable[[dict[str, Any]], bool]:
    """Whether an event is one that the budget pays."""
    if budget.route_id is not None:
        return lambda event: bool(event["route_id"] == budget.route_id)
    if budget.team_id is not None:
        return lambda event: bool(event["team_id"] == budget.team_id)
    key_ids = set(ancestry_of(budget.key_id)) if budget.key_id is not None else set()
    return lambda event: event["key_id"] in key_ids

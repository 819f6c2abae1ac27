"""What a request wants to hold: windows, slots and budgets of its key, team and route, a target."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.gateway.quotas import BudgetRow, LimitRow, Running, TargetSlot
from apps.keys.counters import SLOTS


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that a request may use.

    `costs`: worst-case pico-units by currency, over the targets that it may be sent to.
    """

    tokens: int
    costs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Lost:
    """What is recorded when the worker dies with the request: event (JSON), cost by currency."""

    event: bytes
    charges: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """Limits, budgets and targets in the order that the scripts see them."""

    windows: tuple[LimitRow, ...]
    slots: tuple[LimitRow, ...]
    budgets: tuple[BudgetRow, ...]
    running: tuple[Running, ...]
    targets: tuple[TargetSlot, ...]
    demand: Demand
    now: datetime

    def text(self) -> str:
        """The plan as `shared.lua` describes it; put together, for it is made for every request."""
        tokens = f"{self.demand.tokens}}}"
        windows = ",".join(
            [row.wire + tokens if row.kind == "tpm" else row.wire for row in self.windows]
        )
        slots = ",".join([row.wire for row in self.slots])
        budgets = ",".join(
            [
                f'{running.wire}{self._cost(budget)}"}}'
                for budget, running in zip(self.budgets, self.running, strict=True)
            ]
        )
        targets = ",".join([self._target(target) for target in self.targets])
        return (
            f'{{"windows":[{windows}],"slots":[{slots}],"budgets":[{budgets}],'
            f'"targets":[{targets}]}}'
        )

    def budget_of(self, key: str) -> tuple[BudgetRow, Running] | None:
        """The budget that counts under `key`, and how it runs."""
        for budget, running in zip(self.budgets, self.running, strict=True):
            if running.key == key:
                return budget, running
        for target in self.targets:
            if target.overflow is not None:
                running = target.overflow.running(self.now)
                if running.key == key:
                    return target.overflow, running
        return None

    def _cost(self, budget: BudgetRow) -> int:
        return self.demand.costs.get(budget.currency, 0)

    def _target(self, target: TargetSlot) -> str:
        parts = []
        if target.limit:
            parts.append(f'"key":"{SLOTS}target:{target.key}","limit":{target.limit}')
        if target.overflow is not None:
            wire = target.overflow.running(self.now).wire
            parts.append(f'"overflow":{wire}{self._cost(target.overflow)}"}}')
        return f"{{{','.join(parts)}}}"


def plan_of(
    limits: Sequence[LimitRow],
    budgets: Iterable[BudgetRow],
    demand: Demand,
    now: datetime,
    targets: Sequence[TargetSlot] = (),
) -> Plan:
    """Sort limits by how they are counted. `targets`: places of which one is needed, best first."""
    wanted = tuple(budgets)
    return Plan(
        windows=tuple([limit for limit in limits if limit.kind != "concurrency"]),
        slots=tuple([limit for limit in limits if limit.kind == "concurrency"]),
        budgets=wanted,
        running=tuple([budget.running(now) for budget in wanted]),
        targets=tuple(targets),
        demand=demand,
        now=now,
    )


def charges_text(charges: Mapping[str, int]) -> str:
    """Costs by currency as the scripts read them."""
    return "{" + ",".join([f'"{name}":"{picos}"' for name, picos in charges.items()]) + "}"

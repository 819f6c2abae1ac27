"""How much is left after a request was admitted, as clients of OpenAI's API read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.core.money import PICOS
from apps.gateway.admission.plan import Plan
from apps.gateway.quotas import BudgetRow, LimitRow, Running

_WORDS = {"rpm": "requests", "tpm": "tokens", "concurrency": "concurrency"}
_MICROS = PICOS // 10**6


@dataclass(frozen=True, slots=True)
class Left:
    """A limit, what is left of it, and the seconds until some of it comes back."""

    limit: LimitRow
    remaining: int
    reset_seconds: int


@dataclass(frozen=True, slots=True)
class Purse:
    """A budget, and what of it is spent and held, this request included; pico-units."""

    budget: BudgetRow
    running: Running
    used: int
    held: int

    @property
    def remaining(self) -> int:
        """Below zero where a budget that only warns is overrun."""
        return self.running.amount_picos - self.used - self.held

    @property
    def warning(self) -> int | None:
        """The highest percentage to warn at that is spent; `None` below all."""
        amount, spent = self.running.amount_picos, 100 * self.used
        passed = [percent for percent in self.budget.warn_percents if spent >= percent * amount]
        return max(passed) if passed else None

    def headers(self) -> dict[str, str]:
        """`x-inferadmin-budget-…`: an amount and its currency, the end of the period, a warning."""
        currency = self.budget.currency
        found = {
            "x-inferadmin-budget-limit": f"{_money(self.running.amount_picos)} {currency}",
            "x-inferadmin-budget-remaining": f"{_money(self.remaining)} {currency}",
        }
        if self.running.window.end is not None:
            found["x-inferadmin-budget-reset"] = _moment(self.running.window.end)
        warning = self.warning
        if warning is not None:
            found["x-inferadmin-budget-warning"] = f"{warning}%"
        return found


@dataclass(frozen=True, slots=True)
class Standing:
    """The tightest limit of each kind and the tightest budget that apply.

    `target`: index of the place taken among the plan's targets, 0 without any.
    """

    tightest: tuple[Left, ...]
    purse: Purse | None = None
    target: int = 0

    def headers(self) -> dict[str, str]:
        """`x-ratelimit-…` and `x-inferadmin-budget-…`; none without a limit or budget."""
        found: dict[str, str] = {}
        for left in self.tightest:
            found.update(limit_headers(left))
        if self.purse is not None:
            found.update(self.purse.headers())
        return found

    def facts(self) -> list[dict[str, Any]]:
        """For the request's record: each limit that was close, whose it is and what was left."""
        found: list[dict[str, Any]] = [
            {
                "limit": f"{left.limit.kind} {left.limit.value}",
                "of": f"{left.limit.scope.kind} {left.limit.scope.name}",
                "remaining": left.remaining,
            }
            for left in self.tightest
        ]
        if self.purse is not None:
            budget = self.purse.budget
            found.append(
                {
                    "limit": f"budget {_money(self.purse.running.amount_picos)} {budget.currency}",
                    "of": f"{budget.scope.kind} {budget.scope.name}",
                    "remaining": _money(self.purse.remaining),
                }
            )
        return found


# Of a request to which no limit applies.
UNLIMITED = Standing(())


def standing_of(plan: Plan, figures: Sequence[Any]) -> Standing:
    """Out of what `admit.lua` answers after "ok"."""
    target = figures[0]
    if not plan.windows and not plan.slots and not plan.budgets:
        return Standing((), target=target) if target > 0 else UNLIMITED
    tightest: dict[str, Left] = {}
    at = 1
    for limit in plan.windows:
        _keep(tightest, Left(limit, figures[at], figures[at + 1]))
        at += 2
    for limit in plan.slots:
        _keep(tightest, Left(limit, figures[at], 0))
        at += 1
    purse: Purse | None = None
    for budget, running in zip(plan.budgets, plan.running, strict=True):
        held = int(figures[at + 1]) + plan.demand.costs.get(budget.currency, 0)
        found = Purse(budget, running, int(figures[at]), held)
        if purse is None or _is_tighter(found, purse):
            purse = found
        at += 2
    return Standing(tuple(tightest.values()), purse, max(0, target))


def limit_headers(left: Left) -> dict[str, str]:
    """The three headers of a limit; requests at once come back whenever one ends."""
    word = _WORDS[left.limit.kind]
    found = {
        f"x-ratelimit-limit-{word}": str(left.limit.value),
        f"x-ratelimit-remaining-{word}": str(left.remaining),
    }
    if left.limit.kind != "concurrency":
        found[f"x-ratelimit-reset-{word}"] = f"{left.reset_seconds}s"
    return found


def _keep(tightest: dict[str, Left], left: Left) -> None:
    known = tightest.get(left.limit.kind)
    if known is None or left.remaining < known.remaining:
        tightest[left.limit.kind] = left


def _is_tighter(one: Purse, other: Purse) -> bool:
    """Less of its amount is left: amounts in several currencies cannot be compared otherwise."""
    return one.remaining * max(1, other.running.amount_picos) < other.remaining * max(
        1, one.running.amount_picos
    )


def _money(picos: int) -> str:
    """Six decimals, cut off."""
    sign, whole = ("-", -picos) if picos < 0 else ("", picos)
    units, rest = divmod(whole, PICOS)
    return f"{sign}{units}.{rest // _MICROS:06d}"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"

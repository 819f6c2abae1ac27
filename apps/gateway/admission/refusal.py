"""Words for a limit that is used up, and for targets that are all busy."""

import math
from collections.abc import Sequence
from typing import Any

from apps.core.errors import NoCapacityError, QuotaExceededError
from apps.core.money import from_picos, plain
from apps.gateway.admission.plan import Plan
from apps.gateway.admission.standing import Left, Purse, limit_headers
from apps.gateway.quotas import LimitRow, Scope

_COUNTED = {
    "rpm": "requests a minute",
    "tpm": "tokens a minute",
    "concurrency": "requests at once",
}
_BUDGET_IS_NEVER_FRESH_SECONDS = 3600.0


class LimitReachedError(QuotaExceededError):
    """A limit of ours is used up; `kind` and `scope` name it in logs and records."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        kind: str,
        scope: Scope,
        retry_after_seconds: float,
        headers: dict[str, str],
    ) -> None:
        super().__init__(message, code=code, retry_after_seconds=retry_after_seconds)
        self.kind = kind
        self.scope = scope
        self.headers = headers


class TargetsBusyError(NoCapacityError):
    """Every target of the route has as many requests as it takes; nothing is held."""

    code = "targets_busy"

    def __init__(self) -> None:
        super().__init__(
            "all servers of this model have as many requests as they take; try again in a second",
            retry_after_seconds=1,
        )


def refusal_of(plan: Plan, full: Sequence[Any]) -> LimitReachedError:
    """The error for what `admit.lua` found full: of several the one that lasts longest.

    `full`: of each its family (`windows`, `slots`, `budgets`), index, seconds to wait, used, held.
    """
    refusals = [_refusal(plan, *full[at : at + 5]) for at in range(0, len(full), 5)]
    return max(refusals, key=lambda refusal: refusal.retry_after_seconds or 0.0)


def _refusal(
    plan: Plan, family: bytes, index: int, wait_seconds: int, used: bytes, held: bytes
) -> LimitReachedError:
    if family == b"budgets":
        purse = Purse(plan.budgets[index], plan.running[index], int(used), int(held))
        return _budget_refusal(plan, purse)
    limit = plan.windows[index] if family == b"windows" else plan.slots[index]
    if limit.kind == "tpm" and plan.demand.tokens > limit.value:
        return _too_large(plan, limit)
    return LimitReachedError(
        f"the limit of {limit.value} {_COUNTED[limit.kind]} of the {_words(limit.scope)} is "
        f"reached; try again in {wait_seconds} s",
        code="rate_limit_exceeded",
        kind=limit.kind,
        scope=limit.scope,
        retry_after_seconds=wait_seconds,
        headers=limit_headers(Left(limit, 0, wait_seconds)),
    )


def _too_large(plan: Plan, limit: LimitRow) -> LimitReachedError:
    return LimitReachedError(
        f"this request may use {plan.demand.tokens} tokens, more than the {limit.value} tokens a "
        f"minute of the {_words(limit.scope)}; shorten the prompt or lower max_tokens",
        code="request_over_token_limit",
        kind=limit.kind,
        scope=limit.scope,
        retry_after_seconds=60,
        headers={"x-ratelimit-limit-tokens": str(limit.value)},
    )


def _budget_refusal(plan: Plan, purse: Purse) -> LimitReachedError:
    budget, end = purse.budget, purse.running.window.end
    if end is None:
        wait, renewal = _BUDGET_IS_NEVER_FRESH_SECONDS, "it is not renewed by itself"
    else:
        wait = max(1.0, math.ceil(end.timestamp() - plan.now.timestamp()))
        renewal = f"it is renewed at {end:%Y-%m-%d %H:%M} UTC"
    span = "" if end is None else f" a {budget.schedule.period}"
    wanted = plan.demand.costs.get(budget.currency, 0)
    return LimitReachedError(
        f"the budget of {_amount(purse.running.amount_picos)} {budget.currency}{span} of the "
        f"{_words(budget.scope)} does not cover this request, which may cost {_amount(wanted)}: "
        f"{_amount(purse.used)} is spent and {_amount(purse.held)} held by others; {renewal}",
        code="budget_exceeded",
        kind="budget",
        scope=budget.scope,
        retry_after_seconds=wait,
        headers=purse.headers(),
    )


def _amount(picos: int) -> str:
    return plain(from_picos(picos))


def _words(scope: Scope) -> str:
    return f"{scope.kind} “{scope.name}”"

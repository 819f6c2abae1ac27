"""Words for a limit that is used up."""

import math

from apps.core.errors import QuotaExceededError
from apps.core.money import from_picos
from apps.gateway.admission.plan import Plan
from apps.gateway.snapshot import LimitRow, Scope

_COUNTED = {
    "rpm": "requests a minute",
    "tpm": "tokens a minute",
    "concurrency": "requests at once",
}
_BUDGET_IS_NEVER_FRESH_SECONDS = 3600.0


class LimitReachedError(QuotaExceededError):
    """A limit of ours is used up; `kind` and `scope` name it in logs and records."""

    def __init__(
        self, message: str, *, code: str, kind: str, scope: Scope, retry_after_seconds: float
    ) -> None:
        super().__init__(message, code=code, retry_after_seconds=retry_after_seconds)
        self.kind = kind
        self.scope = scope


def refusal_of(plan: Plan, family: str, index: int, wait_seconds: int) -> LimitReachedError:
    """The error for what `admit.lua` found full: item `index` of `windows`, `slots`, `budgets`."""
    if family == "budgets":
        return _budget_refusal(plan, index)
    limit = plan.windows[index] if family == "windows" else plan.slots[index]
    if limit.kind == "tpm" and plan.demand.tokens > limit.value:
        return _too_large(plan, limit)
    return LimitReachedError(
        f"the limit of {limit.value} {_COUNTED[limit.kind]} of the {_words(limit.scope)} is "
        f"reached; try again in {wait_seconds} s",
        code="rate_limit_exceeded",
        kind=limit.kind,
        scope=limit.scope,
        retry_after_seconds=wait_seconds,
    )


def _too_large(plan: Plan, limit: LimitRow) -> LimitReachedError:
    return LimitReachedError(
        f"this request may use {plan.demand.tokens} tokens, more than the {limit.value} tokens a "
        f"minute of the {_words(limit.scope)}; shorten the prompt or lower max_tokens",
        code="request_over_token_limit",
        kind=limit.kind,
        scope=limit.scope,
        retry_after_seconds=60,
    )


def _budget_refusal(plan: Plan, index: int) -> LimitReachedError:
    budget, period = plan.budgets[index], plan.periods[index]
    amount = f"{from_picos(budget.amount_picos).normalize():f} {budget.currency}"
    if period.end is None:
        wait, renewal = _BUDGET_IS_NEVER_FRESH_SECONDS, "it is not renewed by itself"
    else:
        wait = max(1.0, math.ceil(period.end.timestamp() - plan.now.timestamp()))
        renewal = f"it is renewed at {period.end:%Y-%m-%d %H:%M} UTC"
    span = "" if period.end is None else f" a {budget.period}"
    return LimitReachedError(
        f"the budget of {amount}{span} of the {_words(budget.scope)} does not cover this request; "
        f"{renewal}",
        code="budget_exceeded",
        kind="budget",
        scope=budget.scope,
        retry_after_seconds=wait,
    )


def _words(scope: Scope) -> str:
    return f"{scope.kind} “{scope.name}”"

"""How much of its limits and budgets a key or a team has used."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from apps.billing.models import UsageRecord
from apps.billing.selectors import spent_picos
from apps.core.money import from_picos
from apps.keys.models import ApiKey, Budget, BudgetWarning, Limit, Team
from apps.keys.periods import Window, window_of

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit and what the last minute took of it; `used` is `None` where only Redis knows."""

    limit: Limit
    used: int | None

    @property
    def percent(self) -> int | None:
        """0 to 100; `None` where the use is not known."""
        return None if self.used is None else min(100, 100 * self.used // self.limit.value)


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """A budget, the running period and what was spent in it."""

    budget: Budget
    window: Window
    # What may be spent now: more while the budget is raised.
    amount: Decimal
    spent: Decimal

    @property
    def remaining(self) -> Decimal:
        """Below zero where a budget that only warns is overrun."""
        return self.amount - self.spent

    @property
    def percent(self) -> int:
        """0 to 100; a budget of nothing is always used up."""
        if not self.amount:
            return 100
        return min(100, int(100 * self.spent / self.amount))

    @property
    def warnings(self) -> list[BudgetWarning]:
        """The percentages passed in the running period, the latest first."""
        return [warning for warning in self.budget.warnings.all() if self._is_of_now(warning)]

    def _is_of_now(self, warning: BudgetWarning) -> bool:
        return warning.since == self.window.start


def limits_used(holder: ApiKey | Team) -> list[LimitUse]:
    """The limits that hold for a key (its team's included) or a team, and their use."""
    limits = Limit.objects.filter(_holds_for(holder)).select_related("team", "key")
    return [LimitUse(limit, _used(limit)) for limit in limits]


def budgets_used(holder: ApiKey | Team) -> list[BudgetUse]:
    """The budgets that hold for a key (its team's included) or a team, and what is spent."""
    budgets = (
        Budget.objects.filter(_holds_for(holder))
        .select_related("team", "key")
        .prefetch_related("warnings")
    )
    now = timezone.now()
    return [_budget_use(budget, window_of(budget, now)) for budget in budgets]


def _holds_for(holder: ApiKey | Team) -> Q:
    if isinstance(holder, Team):
        return Q(team=holder)
    return Q(key=holder) | Q(team_id=holder.team_id)


def _used(limit: Limit) -> int | None:
    if limit.kind == Limit.Kind.CONCURRENCY:
        return None
    whose = {"team_id": limit.team_id} if limit.team_id else {"key_id": limit.key_id}
    recent = UsageRecord.objects.filter(**whose, at__gte=timezone.now() - _MINUTE).order_by()
    sums = recent.aggregate(
        requests=Count("pk"), tokens=Sum(F("input_tokens") + F("output_tokens"))
    )
    return int(sums["requests" if limit.kind == Limit.Kind.RPM else "tokens"] or 0)


def _budget_use(budget: Budget, window: Window) -> BudgetUse:
    spent = from_picos(spent_picos(budget, window.start))
    return BudgetUse(budget, window, budget.amount_at(timezone.now()), spent)

"""Actions on limits and budgets of a team, a key or a route.

Each locks what the limit holds for, so that two people who set it at once leave one limit.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict, TypeVar, Unpack

from django.db import transaction
from django.utils import timezone

from apps.core import live
from apps.core.actors import SYSTEM, Actor
from apps.core.audit import audit_write
from apps.core.changes import announce_on_commit
from apps.core.errors import InvalidRequestError
from apps.core.roles import Permission
from apps.core.rows import row_assign, row_insert, row_locked, row_update
from apps.keys.models import ApiKey, Budget, BudgetWarning, Limit, Team
from apps.routes.models import Route

Quota = TypeVar("Quota", Limit, Budget)


class Scope(TypedDict, total=False):
    """What a limit or budget holds for: exactly one of the three."""

    team_id: int | None
    key_id: int | None
    route_id: int | None


class BudgetOptions(TypedDict, total=False):
    """How a budget runs; see the model."""

    time_zone: str
    week_start: int
    is_hard: bool
    warn_percents: list[int]


@transaction.atomic
def limit_set(*, actor: Actor, scope: Scope, kind: str, value: int) -> Limit:
    """Cap `kind` (`Limit.Kind`) for a team, key or route; replaces the cap that is there."""
    actor.require(Permission.MANAGE_KEYS)
    holder = _scope_locked(scope)
    limit = Limit.objects.filter(**holder, kind=kind).first() or Limit(**holder, kind=kind)
    return _quota_write(actor, limit, "limit", {"value": value})


@transaction.atomic
def limit_clear(*, actor: Actor, limit_id: int) -> None:
    """Lift a cap; raises NotFoundError when it is gone already."""
    actor.require(Permission.MANAGE_KEYS)
    limit = _quota_locked(Limit, limit_id)
    _audit_quota(actor, "limit.clear", limit, before={"value": limit.value}, after={})
    limit.delete()


@transaction.atomic
def budget_set(
    *,
    actor: Actor,
    scope: Scope,
    period: str,
    amount: Decimal,
    currency: str = "USD",
    **options: Unpack[BudgetOptions],
) -> Budget:
    """Let a team, key or route spend `amount` a period; replaces the period's budget.

    What was spent in the running period still counts. An option that is left out stays, or is the
    model's default for a new budget.
    """
    actor.require(Permission.MANAGE_KEYS)
    holder = _scope_locked(scope)
    budget = Budget.objects.filter(**holder, period=period).first()
    budget = budget or Budget(**holder, period=period)
    values = {"amount": amount, "currency": currency, **options}
    return _quota_write(actor, budget, "budget", values)


@transaction.atomic
def budget_raise(*, actor: Actor, budget_id: int, amount: Decimal, until: datetime) -> Budget:
    """Let more be spent until a moment; then the budget falls back by itself.

    Binds within two seconds. A raise to come replaces the one that runs.
    """
    actor.require(Permission.MANAGE_KEYS)
    budget = _quota_locked(Budget, budget_id)
    if amount <= budget.amount:
        raise InvalidRequestError.of("amount", f"give more than the budget's {budget.amount}")
    if until <= timezone.now():
        raise InvalidRequestError.of("until", "this moment has passed already")
    values = {"raised_amount": amount, "raised_until": until}
    return _quota_write(actor, budget, "budget", values, verb="raise")


@transaction.atomic
def budget_raise_end(*, actor: Actor, budget_id: int) -> Budget:
    """Let a raise end now. Safe to run twice."""
    actor.require(Permission.MANAGE_KEYS)
    budget = _quota_locked(Budget, budget_id)
    values = {"raised_amount": None, "raised_until": None}
    return _quota_write(actor, budget, "budget", values, verb="raise_end")


@transaction.atomic
def budget_reset(*, actor: Actor, budget_id: int) -> Budget:
    """Let the running period begin anew from now; the ledger stays as it is.

    Binds on every worker within two seconds: what was spent before counts no more.
    """
    actor.require(Permission.MANAGE_KEYS)
    budget = _quota_locked(Budget, budget_id)
    return _quota_write(actor, budget, "budget", {"reset_at": timezone.now()}, verb="reset")


@transaction.atomic
def budget_clear(*, actor: Actor, budget_id: int) -> None:
    """Lift a budget; raises NotFoundError when it is gone already."""
    actor.require(Permission.MANAGE_KEYS)
    budget = _quota_locked(Budget, budget_id)
    before = {"amount": budget.amount, "currency": budget.currency}
    _audit_quota(actor, "budget.clear", budget, before=before, after={})
    budget.delete()


@transaction.atomic
def budget_warn(*, budget: Budget, since: datetime, percent: int, spent: Decimal) -> bool:
    """Record that spending since a moment has passed a percentage; true when that is news."""
    amount = budget.amount_at(timezone.now())
    _warning, is_news = BudgetWarning.objects.get_or_create(
        budget=budget, since=since, percent=percent, defaults={"spent": spent, "amount": amount}
    )
    if is_news:
        after = {"percent": percent, "spent": spent, "amount": amount}
        _audit_quota(SYSTEM, "budget.warn", budget, before={}, after=after)
    return is_news


def quotas_copy(old: ApiKey, new: ApiKey) -> None:
    """Give a key the limits and budgets of another, in the caller's transaction."""
    for quota in [*Limit.objects.filter(key=old), *Budget.objects.filter(key=old)]:
        quota.pk, quota.key = None, new
        quota._state.adding = True
        quota.save()


def _scope_locked(scope: Scope) -> dict[str, Any]:
    """The locked holder of a limit, as `{"team" | "key" | "route": row}`."""
    models_by_name = {"team_id": Team, "key_id": ApiKey, "route_id": Route}
    named = [(name, pk) for name, pk in scope.items() if pk is not None]
    if len(named) != 1:
        raise InvalidRequestError.of("scope", "name exactly one of team, key and route")
    name, pk = named[0]
    return {name.removesuffix("_id"): row_locked(models_by_name[name], pk)}


def _quota_write(
    actor: Actor, quota: Quota, word: str, values: Mapping[str, Any], *, verb: str = "set"
) -> Quota:
    is_new = quota.pk is None
    before = row_assign(quota, values)
    if is_new:
        before = {}
    if is_new:
        row_insert(quota)
    elif before:
        row_update(quota, list(before))
    if is_new or before:
        after = values if is_new else {name: values[name] for name in before}
        _audit_quota(actor, f"{word}.{verb}", quota, before=before, after=after)
    return quota


def _quota_locked(model: type[Quota], pk: int) -> Quota:
    """The row, locked after its holder as `limit_set` does; raises NotFoundError."""
    found = model.objects.filter(pk=pk).first()
    if found is not None:
        row_locked(type(found.scope), found.scope.pk)
    return row_locked(model, pk)


def _audit_quota(
    actor: Actor,
    action: str,
    quota: Limit | Budget,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    """Recorded on what the quota holds for, so that its history tells of it."""
    name = quota.kind if isinstance(quota, Limit) else quota.period
    kind = "team" if quota.team_id else "key" if quota.key_id else "route"
    audit_write(
        actor=actor,
        action=action,
        target=quota.scope,
        before={f"{name}.{field}": value for field, value in before.items()},
        after={f"{name}.{field}": value for field, value in after.items()},
    )
    live.changed_on_commit(kind, quota.scope.pk)
    announce_on_commit("config")

"""Keeping the budget counters of Redis true to the ledger."""

import structlog
from django.utils import timezone

from apps.billing.counters import CounterCheck, counter_mend, counters_checked
from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.errors import NotFoundError
from apps.core.money import from_picos, to_picos
from apps.core.roles import Permission
from apps.keys import quotas

log = structlog.get_logger(__name__)


def counters_mend() -> int:
    """Correct every budget counter that is wrong; how many were. Safe to run beside requests.

    What has passed a percentage to warn at is recorded, once a period.
    """
    mended = 0
    for check in counters_checked():
        _warn(check)
        if counter_mend(check):
            mended += 1
            log.warning(
                "billing.counter_mended",
                budget_id=check.budget.pk,
                since=check.since.isoformat(),
                used_error=check.used_error,
                held_error=check.held_error,
            )
    return mended


def counter_repair(*, actor: Actor, key: str) -> bool:
    """Correct one counter by its name in Redis, for a person; true when it was wrong.

    Raises NotFoundError when no budget counts there.
    """
    actor.require(Permission.MANAGE_KEYS)
    check = next((check for check in counters_checked() if check.key == key), None)
    if check is None:
        raise NotFoundError("no budget counts there any more")
    if not counter_mend(check):
        return False
    audit_write(
        actor=actor,
        action="budget.counter_repair",
        target=check.budget.scope,
        before={"used_picos": check.used_after, "held_picos": check.held},
        after={"used_picos": check.truth.picos, "held_picos": check.running},
    )
    return True


def _warn(check: CounterCheck) -> None:
    amount = to_picos(check.budget.amount_at(timezone.now()))
    for percent in check.budget.warn_percents:
        if 100 * check.truth.picos >= percent * amount:
            quotas.budget_warn(
                budget=check.budget,
                since=check.since,
                percent=percent,
                spent=from_picos(check.truth.picos),
            )

"""Plans, limits and gates for tests of admission."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson

from apps.billing.events import EVENT_FIELD, USAGE_STREAM
from apps.core.errors import QuotaExceededError
from apps.core.redis import connection
from apps.gateway.admission.gate import Gate, Settlement
from apps.gateway.admission.plan import Demand, Lost, Plan, plan_of
from apps.gateway.quotas import BudgetRow, LimitRow, Scope
from apps.keys.periods import Schedule

KEY = Scope("key", 1, "tests")
TEAM = Scope("team", 2, "testers")
LOST = Lost(event=b'{"status": "lost"}', charges={"USD": 5})
NOW = datetime(2026, 12, 1, 12, 30, tzinfo=UTC)
CENT = 10**10

Gates = Callable[..., Gate]


def limit(kind: Any, value: int, scope: Scope = KEY) -> LimitRow:
    return LimitRow(kind=kind, value=value, scope=scope)


def budget(
    amount_picos: int, *, period: str = "month", currency: str = "USD", **fields: Any
) -> BudgetRow:
    return BudgetRow(
        id=7,
        amount_picos=amount_picos,
        currency=currency,
        schedule=Schedule(period, created_at=NOW),
        scope=KEY,
        **fields,
    )


def plan(
    *limits: LimitRow, budgets: tuple[BudgetRow, ...] = (), tokens: int = 10, cost: int = 0
) -> Plan:
    return plan_of(limits, budgets, Demand(tokens=tokens, costs={"USD": cost}), datetime.now(UTC))


def used(*, tokens: int = 0, cost: int = 0, request_id: str = "") -> Settlement:
    event: Any = {"id": request_id, "status": "ok"}
    return Settlement(event=event, tokens=tokens, charges={"USD": cost})


def events() -> list[Any]:
    entries: Any = connection().xrange(USAGE_STREAM)
    return [orjson.loads(fields[EVENT_FIELD.encode()]) for _id, fields in entries]


def counter_name(row: BudgetRow) -> str:
    return row.running(datetime.now(UTC)).key


def counter(row: BudgetRow) -> dict[str, int]:
    raw: Any = connection().hgetall(counter_name(row))
    return {name.decode(): int(value) for name, value in raw.items()}


async def admitted(gate: Gate, wanted: Plan, count: int) -> list[str]:
    """Ids of those of `count` requests at once that got in."""

    async def one() -> str | None:
        request_id = str(uuid4())
        with contextlib.suppress(QuotaExceededError):
            await gate.admit(request_id, wanted, LOST)
            return request_id
        return None

    return [found for found in await asyncio.gather(*(one() for _ in range(count))) if found]

"""Budgets that only warn or are raised, lost counters, and places on targets."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from apps.core.errors import NoCapacityError, QuotaExceededError
from apps.core.redis import connection
from apps.gateway.admission.plan import Demand, Plan, plan_of
from apps.gateway.quotas import Scope, TargetSlot, overflow_budget
from tests.support.admission import (
    CENT,
    LOST,
    Gates,
    admitted,
    budget,
    counter,
    counter_name,
    limit,
    plan,
    used,
)


async def test_a_soft_budget_refuses_nothing_and_shows_the_overrun(gates: Gates) -> None:
    gate, row = gates(), budget(CENT, is_hard=False, warn_percents=(80, 100))
    (first,) = await admitted(gate, plan(budgets=(row,), cost=3 * CENT), 1)
    await gate.settle(first, used(cost=3 * CENT))

    standing = await gate.admit("r2", plan(budgets=(row,), cost=CENT), LOST)

    assert standing.purse is not None
    assert standing.headers() | {"x-inferadmin-budget-reset": ""} == {
        "x-inferadmin-budget-limit": "0.010000 USD",
        "x-inferadmin-budget-remaining": "-0.030000 USD",
        "x-inferadmin-budget-reset": "",
        "x-inferadmin-budget-warning": "100%",
    }
    assert counter(row) == {"used": 3 * CENT, "held": CENT}


async def test_a_raised_budget_falls_back_by_itself(gates: Gates) -> None:
    gate = gates()
    soon = datetime.now(UTC) + timedelta(seconds=1)
    row = budget(CENT, raised_picos=3 * CENT, raised_until=soon)

    raised = await admitted(gate, plan(budgets=(row,), cost=CENT), 5)
    await gate.release(raised[0])
    await asyncio.sleep(1.1)
    after = await admitted(gate, plan(budgets=(row,), cost=CENT), 1)

    assert (len(raised), len(after)) == (3, 0)


async def test_the_limit_that_lasts_longest_names_itself(gates: Gates) -> None:
    gate, row = gates(), budget(CENT, period="never")
    wanted = plan(limit("rpm", 1), limit("concurrency", 1), budgets=(row,), cost=CENT)
    await admitted(gate, wanted, 1)

    with pytest.raises(QuotaExceededError) as caught:
        await gate.admit("r2", wanted, LOST)

    assert caught.value.code == "budget_exceeded"
    assert "0.01 held by others" in caught.value.message


async def test_a_restored_redis_counts_its_money_anew(gates: Gates) -> None:
    gate, row = gates(spent=90 * CENT), budget(100 * CENT)
    wanted = plan(budgets=(row,), cost=10 * CENT)
    for _ in range(2):
        (first,) = await admitted(gate, wanted, 1)
        await gate.settle(first, used())
    connection().set("inferadmin.gateway.settled", 1)
    connection().hset(counter_name(row), "used", 0)

    found = await admitted(gate, wanted, 5)

    assert len(found) == 1
    assert counter(row) == {"used": 90 * CENT, "held": 10 * CENT}


async def test_a_lost_counter_still_knows_what_running_requests_hold(gates: Gates) -> None:
    gate, row = gates(), budget(100 * CENT)
    wanted = plan(budgets=(row,), cost=40 * CENT)
    first, second = await admitted(gate, wanted, 2)
    connection().delete(counter_name(row))

    assert await admitted(gate, wanted, 2) == []
    await gate.settle(first, used(cost=30 * CENT))
    await gate.settle(second, used())

    assert counter(row) == {"used": 30 * CENT, "held": 0}


def on_targets(*targets: TargetSlot, cost: int = 0) -> Plan:
    return plan_of((), (), Demand(1, {"USD": cost}), datetime.now(UTC), targets)


async def test_targets_are_taken_in_order_as_far_as_they_have_room(gates: Gates) -> None:
    gate, wanted = gates(), on_targets(TargetSlot("a", 1), TargetSlot("b", 1))

    standings = [await gate.admit(f"r{index}", wanted, LOST) for index in range(2)]
    with pytest.raises(NoCapacityError) as caught:
        await gate.admit("r2", wanted, LOST)

    assert [standing.target for standing in standings] == [0, 1]
    assert caught.value.code == "targets_busy"
    assert connection().hlen("inferadmin.gateway.holds") == 2
    await gate.settle("r0", used())
    assert (await gate.admit("r2", wanted, LOST)).target == 0


async def test_a_fallback_swaps_its_place(gates: Gates) -> None:
    gate = gates()
    wanted = on_targets(TargetSlot("a", 1), TargetSlot("b", 1), TargetSlot("c", 0))
    await gate.admit("r0", wanted, LOST)
    await gate.admit("r1", wanted, LOST)

    taken = [await gate.swap("r0", wanted, (1, 2)), await gate.swap("r1", wanted, (0,))]
    none = await gate.swap("r1", wanted, ())
    await gate.settle("r0", used())

    assert (taken, none) == ([2, 0], None)
    assert connection().keys("inferadmin.gateway.slots:*") == []


async def test_overflow_is_held_and_charged_only_where_it_is_taken(gates: Gates) -> None:
    gate = gates()
    cap = overflow_budget(Scope("route", 4, "chat"), 100 * CENT, "USD")
    wanted = on_targets(TargetSlot("own", 1), TargetSlot("paid", 0, cap), cost=60 * CENT)
    for request_id in ("r0", "r1"):
        await gate.admit(request_id, wanted, LOST)

    with pytest.raises(NoCapacityError):
        await gate.admit("r2", wanted, LOST)
    held = counter(cap)
    await gate.settle("r0", used(cost=50 * CENT))
    await gate.settle("r1", used(cost=30 * CENT))

    assert held == {"used": 0, "held": 60 * CENT}
    assert counter(cap) == {"used": 30 * CENT, "held": 0}

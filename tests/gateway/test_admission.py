"""Hold, then settle: limits and budgets under any interleaving, straight against Redis."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.core.errors import QuotaExceededError
from apps.core.redis import connection
from apps.gateway.admission.gate import LEASE_SECONDS
from apps.gateway.quotas import BudgetRow
from tests.support.admission import (
    CENT,
    LOST,
    TEAM,
    Gates,
    admitted,
    budget,
    counter,
    counter_name,
    events,
    limit,
    plan,
    used,
)


async def test_a_budget_is_never_overrun_by_requests_at_once(gates: Gates) -> None:
    row = budget(100 * CENT)
    wanted = plan(budgets=(row,), cost=10 * CENT)

    ids = await admitted(gates(), wanted, 50)

    assert len(ids) == 10
    assert counter(row) == {"used": 0, "held": 100 * CENT}


async def test_unused_money_is_given_back_and_used_money_stays(gates: Gates) -> None:
    gate, row = gates(), budget(100 * CENT)
    wanted = plan(budgets=(row,), cost=60 * CENT)
    (first,) = await admitted(gate, wanted, 2)

    await gate.settle(first, used(cost=25 * CENT))
    second = await admitted(gate, wanted, 1)
    third = await admitted(gate, wanted, 1)

    assert (len(second), len(third)) == (1, 0)
    assert counter(row) == {"used": 25 * CENT, "held": 60 * CENT}


async def test_amounts_beyond_double_precision_stay_exact(gates: Gates) -> None:
    gate, row = gates(), budget(9_000_000 * 10**12)
    most = row.amount_picos - 1

    (first,) = await admitted(gate, plan(budgets=(row,), cost=most), 2)
    await gate.settle(first, used(cost=most))

    assert len(await admitted(gate, plan(budgets=(row,), cost=2), 1)) == 0
    assert len(await admitted(gate, plan(budgets=(row,), cost=1), 1)) == 1
    assert counter(row) == {"used": most, "held": 1}


async def test_a_spent_budget_refuses_what_costs_nothing(gates: Gates) -> None:
    with pytest.raises(QuotaExceededError) as caught:
        await gates().admit("r1", plan(budgets=(budget(0, period="never"),), cost=0), LOST)

    assert caught.value.code == "budget_exceeded"
    assert "not renewed" in caught.value.message


async def test_money_in_another_currency_is_not_mixed(gates: Gates) -> None:
    gate, row = gates(), budget(CENT, currency="EUR")

    (first,) = await admitted(gate, plan(budgets=(row,), cost=50 * CENT), 1)
    await gate.settle(first, used(cost=50 * CENT))

    assert counter(row) == {"used": 0, "held": 0}


async def test_requests_a_minute_hold_over_three_workers(gates: Gates) -> None:
    workers, wanted = [gates(), gates(), gates()], plan(limit("rpm", 30))

    found = await asyncio.gather(*(admitted(worker, wanted, 30) for worker in workers))

    assert sum(map(len, found)) == 30


async def test_a_full_limit_names_itself_and_says_when_to_come_back(gates: Gates) -> None:
    gate, wanted = gates(), plan(limit("rpm", 1, TEAM))
    await admitted(gate, wanted, 1)

    with pytest.raises(QuotaExceededError) as caught:
        await gate.admit("r2", wanted, LOST)

    assert caught.value.code == "rate_limit_exceeded"
    assert "1 requests a minute of the team “testers”" in caught.value.message
    assert caught.value.retry_after_seconds is not None
    assert 55 <= caught.value.retry_after_seconds <= 61


async def test_a_refused_request_consumes_nothing(gates: Gates) -> None:
    gate, row = gates(), budget(CENT)
    limits = (limit("rpm", 100), limit("tpm", 1000), limit("concurrency", 5))

    assert await admitted(gate, plan(*limits, budgets=(row,), cost=2 * CENT), 20) == []

    assert counter(row) == {"used": 0, "held": 0}
    assert sorted(connection().keys("inferadmin.gateway.*")) == [counter_name(row).encode()]


async def test_tokens_a_minute_hold_the_estimate_and_count_the_truth(gates: Gates) -> None:
    gate, wanted = gates(), plan(limit("tpm", 100), tokens=60)
    (first,) = await admitted(gate, wanted, 20)

    await gate.settle(first, used(tokens=40))
    second = await admitted(gate, wanted, 2)
    await gate.settle(second[0], used(tokens=90))

    assert len(second) == 1
    with pytest.raises(QuotaExceededError):
        await gate.admit("r3", plan(limit("tpm", 100), tokens=1), LOST)


async def test_a_request_larger_than_its_token_limit_is_told_so(gates: Gates) -> None:
    with pytest.raises(QuotaExceededError) as caught:
        await gates().admit("r1", plan(limit("tpm", 100), tokens=101), LOST)

    assert caught.value.code == "request_over_token_limit"
    assert "lower max_tokens" in caught.value.message


async def test_a_slot_comes_back_at_once(gates: Gates) -> None:
    gate, wanted = gates(), plan(limit("concurrency", 3))
    first = await admitted(gate, wanted, 20)
    assert len(first) == 3

    await gate.settle(first[0], used())

    assert len(await admitted(gate, wanted, 20)) == 1


async def test_what_never_ran_is_given_back_whole(gates: Gates) -> None:
    gate, row = gates(), budget(CENT)
    wanted = plan(limit("rpm", 1), limit("tpm", 10), budgets=(row,), cost=CENT)
    (first,) = await admitted(gate, wanted, 1)

    await gate.release(first)

    assert events() == []
    assert len(await admitted(gate, wanted, 2)) == 1


async def test_settling_twice_counts_and_records_once(gates: Gates) -> None:
    gate, row = gates(), budget(100 * CENT)
    (first,) = await admitted(gate, plan(budgets=(row,), cost=CENT), 1)

    await asyncio.gather(*(gate.settle(first, used(cost=CENT)) for _ in range(5)))

    assert counter(row) == {"used": CENT, "held": 0}
    assert len(events()) == 1


async def test_five_hundred_calls_with_failures_leave_nothing_held(gates: Gates) -> None:
    gate, row = gates(), budget(10**6 * CENT)
    limits = (limit("concurrency", 1000), limit("tpm", 10**6))
    ids = await admitted(gate, plan(*limits, budgets=(row,), cost=7), 500)

    await asyncio.gather(
        *(gate.settle(request_id, used(cost=index % 3)) for index, request_id in enumerate(ids))
    )

    assert counter(row) == {"used": sum(index % 3 for index in range(500)), "held": 0}
    assert len(events()) == 500
    assert connection().hlen("inferadmin.gateway.holds") == 0
    assert connection().zcard("inferadmin.gateway.leases") == 0
    assert connection().keys("inferadmin.gateway.slots:*") == []


async def test_a_missing_counter_is_rebuilt_from_the_ledger_once(gates: Gates) -> None:
    row, asked = budget(100 * CENT), list[BudgetRow]()
    wanted = plan(budgets=(row,), cost=10 * CENT)
    workers = [gates(spent=70 * CENT, asked=asked) for _ in range(8)]

    found = await asyncio.gather(*(admitted(worker, wanted, 5) for worker in workers))

    assert sum(map(len, found)) == 3
    assert counter(row) == {"used": 70 * CENT, "held": 30 * CENT}
    assert len(asked) <= 8


async def test_a_dead_worker_s_holds_come_back_with_a_lost_record(
    gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.gateway.admission.gate.LEASE_SECONDS", -1)
    row = budget(100 * CENT)
    wanted = plan(limit("concurrency", 1), budgets=(row,), cost=50 * CENT)
    await admitted(gates(), wanted, 1)

    reaped = [await gates().reap(), await gates().reap()]

    assert reaped == [1, 0]
    assert counter(row) == {"used": 5, "held": 0}
    assert events() == [{"status": "lost"}]
    assert len(await admitted(gates(), wanted, 1)) == 1


async def test_a_worker_that_lives_is_not_reaped(gates: Gates) -> None:
    gate = gates()
    (first,) = await admitted(gate, plan(limit("concurrency", 1)), 1)
    connection().zadd("inferadmin.gateway.leases", {first: 1})

    await gate.renew()

    assert await gates().reap() == 0
    until: Any = connection().zscore("inferadmin.gateway.leases", first)
    left = datetime.fromtimestamp(until, UTC) - datetime.now(UTC)
    assert left > timedelta(seconds=LEASE_SECONDS - 5)


async def test_an_old_minute_is_forgotten(gates: Gates) -> None:
    gate, wanted = gates(), plan(limit("rpm", 2))
    key = "inferadmin.gateway.window:key:1:rpm"
    now = int(datetime.now(UTC).timestamp())
    connection().hset(key, mapping={str(now - 70): 1, str(now - 50): 1, "sum": 2})
    connection().hset(key, "first", now - 70)

    assert len(await admitted(gate, wanted, 5)) == 1

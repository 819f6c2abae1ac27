"""Budget counters of Redis beside the ledger."""

from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import orjson
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from apps.billing.counters import counters_checked, spent_now
from apps.billing.events import EVENT_FIELD, USAGE_STREAM
from apps.billing.services.counters import counters_mend
from apps.core.models import AuditEntry, User
from apps.core.redis import connection
from apps.keys.counters import HOLDS, budget_counter
from apps.keys.models import Budget, BudgetWarning
from apps.keys.periods import window_of
from tests.factories import (
    ApiKeyFactory,
    BudgetFactory,
    DailyUsageFactory,
    UsageRecordFactory,
)

pytestmark = pytest.mark.usefixtures("db", "empty_redis")


@pytest.fixture
def budget(db: None) -> Budget:
    """Of a key that spent 70 by the ledger and 5 by an event that waits."""
    budget = BudgetFactory.create(key=ApiKeyFactory.create(), period="day")
    record = UsageRecordFactory.create(key=budget.key, cost_picos=70, currency="USD")
    DailyUsageFactory.create(key=budget.key, cost_picos=70, currency="USD")
    wait(budget, str(record.pk), 70)  # written, and not yet off the stream
    wait(budget, "11111111-1111-4111-8111-111111111111", 5)
    wait(budget, "22222222-2222-4222-8222-222222222222", 9, currency="EUR")
    wait(budget, "33333333-3333-4333-8333-333333333333", 9, key_id=0)
    wait(budget, "44444444-4444-4444-8444-444444444444", 9, at="2020-01-01T00:00:00+00:00")
    return budget


def wait(budget: Budget, event_id: str, cost: int, **fields: Any) -> None:
    assert budget.key is not None
    event = {
        "id": event_id,
        "at": datetime.now(UTC).isoformat(),
        "key_id": budget.key_id,
        "team_id": budget.key.team_id,
        "route_id": None,
        "cost_picos": cost,
        "currency": "USD",
    }
    connection().xadd(USAGE_STREAM, {EVENT_FIELD: orjson.dumps(event | fields)})


def since(budget: Budget) -> datetime:
    return window_of(budget, datetime.now(UTC)).start


def count(budget: Budget, used: int, held: int) -> str:
    key = budget_counter(budget.pk, since(budget))
    connection().hset(key, mapping={"used": used, "held": held})
    return key


def counted(key: str) -> list[int]:
    values: Any = connection().hmget(key, "used", "held")
    return [int(value) for value in values]


def hold(key: str, cost: int) -> None:
    plan = orjson.dumps({"budgets": [{"key": key, "cost": str(cost)}]}).decode()
    connection().hset(HOLDS, "r1", f"1 0 {plan}\n{{}}\n{{}}")


def test_spending_includes_each_event_that_waits_once(budget: Budget) -> None:
    assert spent_now(budget, since(budget)) == 75


def test_a_right_counter_is_left_alone(budget: Budget) -> None:
    key = count(budget, used=75, held=40)
    hold(key, 40)

    assert [check.is_right for check in counters_checked()] == [True]
    assert counters_mend() == 0
    assert counted(key) == [75, 40]


@pytest.mark.parametrize(("used", "held"), [(0, 0), (1000, 40), (75, -3), (-20, 10**15)])
def test_a_wrong_counter_is_mended_from_ledger_stream_and_holds(
    budget: Budget, used: int, held: int
) -> None:
    key = count(budget, used, held)
    hold(key, 40)

    assert counters_mend() == 1

    assert counted(key) == [75, 40]
    assert counters_mend() == 0


def test_the_command_tells_and_repairs(budget: Budget) -> None:
    key = count(budget, used=7, held=0)
    told = StringIO()

    with pytest.raises(SystemExit):
        call_command("check_counters", stdout=told, stderr=StringIO())
    call_command("check_counters", "--repair", stdout=told)
    call_command("check_counters", stdout=told)

    assert [line.partition(":")[0] for line in told.getvalue().splitlines()] == [
        "wrong",
        "mended",
        "right",
    ]
    assert counted(key) == [75, 0]


def test_a_counter_of_a_budget_that_is_gone_is_passed_over(budget: Budget) -> None:
    count(budget, used=7, held=0)
    budget.delete()

    assert counters_checked() == []


def test_a_percentage_passed_is_recorded_once_a_period(budget: Budget) -> None:
    Budget.objects.update(amount=0, warn_percents=[80, 100])
    count(budget, used=75, held=0)

    counters_mend()
    counters_mend()

    assert list(BudgetWarning.objects.values_list("percent", "since").order_by("percent")) == [
        (80, since(budget)),
        (100, since(budget)),
    ]
    assert AuditEntry.objects.filter(action="budget.warn").count() == 2


def test_the_page_shows_a_difference_and_repairs_it(
    budget: Budget, console_as: Callable[[User], Client], key_manager: User
) -> None:
    key = count(budget, used=7, held=0)
    client = console_as(key_manager)

    shown = client.get(reverse("billing:counter-list"))
    repaired = client.post(reverse("billing:counter-repair"), {"key": key}, follow=True)

    assert "Repair" in shown.content.decode()
    assert '<button class="button">Repair' not in repaired.content.decode()
    assert counted(key) == [75, 0]
    assert AuditEntry.objects.get(action="budget.counter_repair").actor == key_manager


def test_a_viewer_sees_the_counters_and_mends_none(
    budget: Budget, console_as: Callable[[User], Client], viewer: User
) -> None:
    key = count(budget, used=7, held=0)
    client = console_as(viewer)

    assert "Repair" not in client.get(reverse("billing:counter-list")).content.decode()
    assert client.post(reverse("billing:counter-repair"), {"key": key}).status_code == 403
    assert counted(key) == [7, 0]

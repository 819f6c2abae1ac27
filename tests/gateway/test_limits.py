"""Limits and budgets as clients meet them, over one worker and several."""

import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from apps.billing.counters import counters_checked
from apps.billing.models import DailyUsage, Price
from apps.core.actors import SYSTEM
from apps.core.redis import connection
from apps.keys import quotas
from apps.keys.models import ApiKey, Budget, Limit
from apps.routes.models import Route
from tests.factories import BudgetFactory, DailyUsageFactory, LimitFactory
from tests.gateway.conftest import HELLO_COST, Client, Events, Serve
from tests.support.fake_model_server import FakeModelServer, Script, wait_until


def at_once(clients: list[Client], count: int, **fields: Any) -> list[int]:
    """Statuses of so many requests at once, spread over the workers."""

    def one(index: int) -> int:
        return clients[index % len(clients)].chat(**fields).status_code

    with ThreadPoolExecutor(max_workers=count) as pool:
        return list(pool.map(one, range(count)))


def test_fifty_requests_at_once_never_overrun_a_budget(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer, events: Events
) -> None:
    # A request may cost at most about 1 000 tokens at 2 a million: five of them fit.
    BudgetFactory.create(key=key, amount="0.0105")
    model_server.script = Script(first_delay=0.3)

    statuses = at_once([serve(), serve()], 50, max_tokens=1000)

    assert set(statuses) == {200, 429}
    assert statuses.count(200) == 5
    assert sum(event["cost_picos"] or 0 for event in events.all()) <= 10_500_000_000


@pytest.mark.parametrize(
    "wish", [{"n_predict": 1000}, {"max_tokens": 100, "n_cmpl": 10}, {"max_tokens": 100, "n": 10}]
)
def test_money_is_held_by_every_name_that_asks_for_more(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer, wish: dict[str, Any]
) -> None:
    BudgetFactory.create(key=key, amount="0.001")

    response = serve().chat(**wish)

    assert response.json()["error"]["code"] == "budget_exceeded"
    assert model_server.seen == []


def test_an_exhausted_budget_names_itself(serve: Serve, key: ApiKey, route: Route) -> None:
    BudgetFactory.create(key=key, amount="0.001", period=Budget.Period.DAY)

    response = serve().chat(max_tokens=1000)

    assert response.status_code == 429
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("insufficient_quota", "budget_exceeded")
    assert f"budget of 0.001 USD a day of the key “{key.name}”" in error["message"]
    assert 0 < int(response.headers["retry-after"]) <= 86_400


@pytest.mark.parametrize("has_budget", [True, False])
def test_a_request_without_a_maximum_gets_one_where_money_is_held_by_it(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer, has_budget: bool
) -> None:
    if has_budget:
        BudgetFactory.create(key=key, amount="1")

    assert serve().chat().status_code == 200

    sent = model_server.seen[0].body
    assert sent.get("max_tokens") == (route.default_max_tokens if has_budget else None)


def test_a_budget_that_redis_forgot_is_read_from_the_ledger(
    serve: Serve, key: ApiKey, route: Route
) -> None:
    BudgetFactory.create(key=key, amount="0.003")
    DailyUsageFactory.create(key=key, cost_picos=2_000_000_000, currency="USD")
    client = serve()

    assert client.chat(max_tokens=900).status_code == 429
    assert client.chat(max_tokens=100).status_code == 200


def test_requests_a_minute_over_three_workers(serve: Serve, key: ApiKey, route: Route) -> None:
    LimitFactory.create(key=key, kind=Limit.Kind.RPM, value=7)

    statuses = at_once([serve(), serve(), serve()], 21)

    assert statuses.count(200) == 7
    assert statuses.count(429) == 14


def test_requests_at_once_never_pass_the_limit_upstream(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer
) -> None:
    LimitFactory.create(team=key.team, kind=Limit.Kind.CONCURRENCY, value=3)
    model_server.script = Script(first_delay=0.3)

    statuses = at_once([serve(), serve()], 16, stream=True)

    assert model_server.peak <= 3
    assert statuses.count(200) >= 3


def test_headers_tell_the_tightest_limit_and_go_down(
    serve: Serve, key: ApiKey, route: Route
) -> None:
    LimitFactory.create(key=key, kind=Limit.Kind.RPM, value=5)
    LimitFactory.create(route=route, kind=Limit.Kind.RPM, value=50)
    LimitFactory.create(team=key.team, kind=Limit.Kind.TPM, value=10_000)
    client = serve()

    first, second = client.chat(max_tokens=10), client.chat(max_tokens=10)

    assert first.headers["x-ratelimit-limit-requests"] == "5"
    assert first.headers["x-ratelimit-remaining-requests"] == "4"
    assert second.headers["x-ratelimit-remaining-requests"] == "3"
    assert second.headers["x-ratelimit-reset-requests"].endswith("s")
    assert int(second.headers["x-ratelimit-remaining-tokens"]) < 10_000


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_are_counted_as_used_not_as_estimated(
    serve: Serve, key: ApiKey, route: Route, stream: bool
) -> None:
    LimitFactory.create(key=key, kind=Limit.Kind.TPM, value=2000)
    client = serve()

    statuses = [client.chat(max_tokens=1500, stream=stream).status_code for _ in range(4)]

    assert statuses == [200] * 4
    assert connection().hget(f"inferadmin.gateway.window:key:{key.pk}:tpm", "sum") == b"36"


def test_a_model_without_a_price_is_flagged_not_free(
    serve: Serve, key: ApiKey, route: Route, events: Events
) -> None:
    Price.objects.all().delete()

    assert serve().chat().status_code == 200
    assert events.only()["cost_picos"] is None


def test_what_was_refused_is_not_recorded_and_what_failed_is(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer, events: Events
) -> None:
    LimitFactory.create(key=key, kind=Limit.Kind.RPM, value=1)
    model_server.script = Script(status=500)
    client = serve()

    assert [client.chat().status_code, client.chat().status_code] == [502, 429]
    assert events.only()["status"] == "error"
    wait_until(lambda: connection().hlen("inferadmin.gateway.holds") == 0)


def test_a_reset_frees_every_worker_and_leaves_the_ledger(
    serve: Serve, key: ApiKey, route: Route
) -> None:
    budget = BudgetFactory.create(key=key, amount="0.001")
    DailyUsageFactory.create(key=key, cost_picos=10**9, currency="USD")
    clients = [serve(), serve()]
    assert [client.chat(max_tokens=10).status_code for client in clients] == [429, 429]

    quotas.budget_reset(actor=SYSTEM, budget_id=budget.pk)

    started = time.monotonic()
    wait_until(lambda: {client.chat(max_tokens=10).status_code for client in clients} == {200})
    assert time.monotonic() - started < 2
    assert DailyUsage.objects.get().cost_picos == 10**9


def test_what_is_left_goes_down_and_is_what_redis_counts(
    serve: Serve, key: ApiKey, route: Route
) -> None:
    budget = BudgetFactory.create(key=key, amount="1")
    LimitFactory.create(key=key, kind=Limit.Kind.CONCURRENCY, value=3)
    client = serve()

    answers = [client.chat(max_tokens=10) for _ in range(3)]

    left = [
        Decimal(answer.headers["x-inferadmin-budget-remaining"].split()[0]) for answer in answers
    ]
    assert left == sorted(left, reverse=True)
    assert left[0] > left[-1]
    assert {answer.headers["x-ratelimit-remaining-concurrency"] for answer in answers} == {"2"}
    (check,) = counters_checked()
    assert check.budget == budget
    assert (check.used, check.held) == (3 * HELLO_COST, 0)
    assert check.is_right

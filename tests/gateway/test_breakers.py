"""Targets that fail are left alone for a while, and tried again by one request."""

import time

import pytest

from apps.core.errors import UpstreamError
from apps.fleet.models import Server
from apps.gateway.breakers import Breakers
from apps.gateway.errors import UpstreamBusyError
from apps.gateway.snapshot import ServerRow, TargetRow
from apps.keys.models import ApiKey
from apps.routes.models import Route, Target
from tests.gateway.conftest import Client, Events, Serve, add_target
from tests.support.fake_model_server import FakeModelServer, Script

BROKEN = UpstreamError("it failed")
TARGET = TargetRow(
    1,
    ServerRow(1, "s", "vllm", "http://s", False, secret=""),
    "m",
    None,
    "openai",
    0,
    1,
    True,
    None,
)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breakers(clock: Clock) -> Breakers:
    return Breakers(clock)


def fail(breakers: Breakers, times: int, failure: UpstreamError = BROKEN) -> None:
    for _time in range(times):
        breakers.failed(TARGET, failure)


def test_a_few_failures_are_chance_and_five_in_a_row_are_not(breakers: Breakers) -> None:
    fail(breakers, 4)
    assert breakers.ready([TARGET]) == [TARGET]
    breakers.worked(TARGET.id)
    fail(breakers, 4)
    assert breakers.ready([TARGET]) == [TARGET]

    fail(breakers, 1)

    assert breakers.ready([TARGET]) == []
    assert 1.6 <= breakers.seconds_left(TARGET.id) <= 2.4


def test_one_request_tries_again_while_the_others_wait(breakers: Breakers, clock: Clock) -> None:
    fail(breakers, 5)
    clock.now += 3
    assert breakers.ready([TARGET]) == [TARGET]

    breakers.begin(TARGET.id)
    assert breakers.ready([TARGET]) == []

    breakers.worked(TARGET.id)
    assert breakers.ready([TARGET]) == [TARGET]
    assert breakers.seconds_left(TARGET.id) == 0.0


def test_each_failed_try_makes_it_longer_up_to_a_bound(breakers: Breakers, clock: Clock) -> None:
    fail(breakers, 5)
    longest = breakers.seconds_left(TARGET.id)
    for _try in range(3):
        clock.now += 1000
        fail(breakers, 1)
        assert breakers.seconds_left(TARGET.id) > longest
        longest = breakers.seconds_left(TARGET.id)
    for _try in range(20):
        fail(breakers, 1)
    assert breakers.seconds_left(TARGET.id) <= 72


def test_a_refused_key_or_account_opens_at_once(breakers: Breakers) -> None:
    fail(breakers, 1, UpstreamError("no", code="upstream_misconfigured"))

    assert breakers.seconds_left(TARGET.id) == 30.0


@pytest.mark.parametrize(("told", "seconds"), [(7, 7.0), (3600, 60.0), (None, 0.0)])
def test_a_busy_server_is_left_alone_as_long_as_it_says(
    breakers: Breakers, told: float | None, seconds: float
) -> None:
    fail(breakers, 1, UpstreamBusyError("busy", retry_after_seconds=told))

    assert breakers.seconds_left(TARGET.id) == seconds


@pytest.fixture
def second(route: Route, key: ApiKey) -> Target:
    """The first tier refuses connections, the second answers."""
    url = Server.objects.get().url
    Server.objects.update(url="http://127.0.0.1:9")
    return add_target(route, tier=1, server={"name": "second", "url": url})


def test_a_broken_target_is_no_longer_tried(serve: Serve, second: Target, events: Events) -> None:
    client = serve()

    for _request in range(7):
        assert client.chat().status_code == 200

    tried = [[item["server"] for item in event["attempts"]] for event in events.all()]
    assert [len(servers) for servers in tried] == [2] * 5 + [1] * 2
    assert tried[-1] == ["second"]


@pytest.mark.parametrize(("wish", "status"), [("true", 502), ("false", 200)])
def test_a_client_may_forbid_the_fallback(
    serve: Serve, second: Target, events: Events, wish: str, status: int
) -> None:
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}]}

    answer = serve().post("/v1/chat/completions", body, **{"x-inferadmin-no-fallback": wish})

    assert answer.status_code == status
    assert len(events.only()["attempts"]) == (1 if wish == "true" else 2)


def test_a_wish_that_is_none_is_told(serve: Serve, second: Target) -> None:
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}]}

    answer = serve().post("/v1/chat/completions", body, **{"x-inferadmin-no-fallback": "maybe"})

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "x-inferadmin-no-fallback"


def test_no_more_targets_are_tried_than_the_route_says(
    serve: Serve, second: Target, events: Events
) -> None:
    Route.objects.update(max_attempts=1)

    assert serve().chat().status_code == 502
    assert len(events.only()["attempts"]) == 1


@pytest.fixture
def cooling(route: Route, key: ApiKey, model_server: FakeModelServer, serve: Serve) -> Client:
    """A client whose only target has just said that it is busy for two seconds."""
    client = serve()
    model_server.script = Script(status=429, retry_after="2")
    assert client.chat().status_code == 503
    model_server.script = Script()
    return client


def test_a_request_waits_while_all_targets_cool_down(
    cooling: Client, model_server: FakeModelServer
) -> None:
    started = time.monotonic()

    answer = cooling.chat()

    assert answer.status_code == 200
    assert time.monotonic() - started > 1
    assert len(model_server.seen) == 2


def test_past_the_routes_patience_it_is_told_when_to_come_back(
    route: Route, key: ApiKey, model_server: FakeModelServer, serve: Serve, events: Events
) -> None:
    Route.objects.update(wait_seconds=1)
    client = serve()
    model_server.script = Script(status=429, retry_after="20")
    client.chat()

    answer = client.chat()

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "targets_cooling")
    assert 18 <= int(answer.headers["retry-after"]) <= 20
    assert len(model_server.seen) == len(events.all()) == 1


def test_mistakes_of_clients_never_stop_a_target(
    route: Route, key: ApiKey, model_server: FakeModelServer, serve: Serve
) -> None:
    client = serve()
    model_server.script = Script(status=400)
    for _request in range(20):
        assert client.chat().status_code == 400
    model_server.script = Script()

    assert client.chat().status_code == 200


@pytest.mark.parametrize("holder", ["key", "team"])
def test_a_key_or_team_may_keep_its_data_in_the_house(
    route: Route, key: ApiKey, model_server: FakeModelServer, serve: Serve, holder: str
) -> None:
    Server.objects.update(is_external=True)
    row = key if holder == "key" else key.team
    type(row)._default_manager.filter(pk=row.pk).update(data_class=Route.DataClass.ON_PREM)

    answer = serve().chat()

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_target")
    assert model_server.seen == []

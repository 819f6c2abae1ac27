"""Targets that take so many requests at once: the next one, a place in the line, or a refusal."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from apps.routes.models import Route, Target
from tests.factories import ApiKeyFactory
from tests.gateway.conftest import Client, Events, Serve, add_target
from tests.support.fake_model_server import FakeModelServer, Script

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as pool:
        yield pool


@pytest.fixture
def capped(route: Route, model_server: FakeModelServer) -> Route:
    """Its only target takes two requests at once; each lasts half a second."""
    Target.objects.update(max_in_flight=2)
    model_server.script = Script(headers_delay=0.5)
    return route


def test_no_more_are_sent_than_it_takes_by_any_worker(
    serve: Serve, capped: Route, model_server: FakeModelServer, pool: ThreadPoolExecutor
) -> None:
    clients = [serve(), serve()]
    started = time.monotonic()

    answers = [pool.submit(clients[number % 2].chat) for number in range(8)]

    assert [answer.result().status_code for answer in answers] == [200] * 8
    assert len(model_server.seen) == 8
    assert time.monotonic() - started >= 4 * 0.5  # two at a time, half a second each


def test_the_next_tier_takes_what_does_not_fit(
    serve: Serve, capped: Route, events: Events, pool: ThreadPoolExecutor
) -> None:
    with FakeModelServer().served() as second:
        add_target(capped, tier=1, server={"name": "second", "url": second.url})
        client = serve()

        answers = [pool.submit(client.chat) for _request in range(5)]
        hosts = [answer.result().headers["x-inferadmin-target"] for answer in answers]
        again = client.chat().headers["x-inferadmin-target"]

    assert sum(host.startswith("second/") for host in hosts) == 3
    assert not again.startswith("second/")  # it comes back by itself
    assert all(len(event["attempts"]) == 1 for event in events.all())


def test_a_failed_place_is_given_back_and_the_next_one_counted(
    serve: Serve, route: Route, model_server: FakeModelServer, events: Events
) -> None:
    Target.objects.update(max_in_flight=1)
    with FakeModelServer().served() as second:
        add_target(route, tier=1, max_in_flight=1, server={"name": "second", "url": second.url})
        model_server.script = Script(status=500)
        client = serve()

        first = [client.chat() for _request in range(3)]
        second.script = Script(status=500)
        broken = client.chat()
        model_server.script = second.script = Script()
        last = client.chat()

    assert [answer.headers["x-inferadmin-target"] for answer in first] == ["second/upstream"] * 3
    assert (broken.status_code, last.status_code) == (502, 200)


@pytest.mark.parametrize(
    ("policy", "waits"), [({"wait_seconds": 0}, False), ({"max_waiting": 0}, False), ({}, True)]
)
def test_past_its_bounds_a_request_is_refused(
    serve: Serve, capped: Route, pool: ThreadPoolExecutor, policy: dict[str, int], waits: bool
) -> None:
    Route.objects.update(**policy)
    client = serve()

    answers = [pool.submit(client.chat) for _request in range(3)]
    found = sorted((answer.result() for answer in answers), key=lambda answer: answer.status_code)

    if waits:
        assert [answer.status_code for answer in found] == [200] * 3
    else:
        assert [answer.status_code for answer in found] == [200, 200, 503]
        assert found[-1].json()["error"]["code"] == "targets_busy"
        assert found[-1].headers["retry-after"] == "1"


def test_a_higher_priority_is_served_first(
    serve: Serve, route: Route, model_server: FakeModelServer, pool: ThreadPoolExecutor
) -> None:
    Target.objects.update(max_in_flight=1)
    model_server.script = Script(headers_delay=0.4)
    urgent = ApiKeyFactory.create(secret="sk-ia-tests-urgent-key-0001", priority=9)
    normal = serve()
    hasty = Client(normal.url, secret="sk-ia-tests-urgent-key-0001", http=normal.http)
    assert urgent.priority == 9

    order: list[str] = []

    def ask(client: Client, name: str) -> httpx.Response:
        answer = client.chat()
        order.append(name)
        return answer

    waiting: list[Future[httpx.Response]] = []
    for client, name in ((normal, "first"), (normal, "second"), (normal, "third")):
        waiting.append(pool.submit(ask, client, name))
        time.sleep(0.1)
    waiting.append(pool.submit(ask, hasty, "urgent"))

    assert [answer.result().status_code for answer in waiting] == [200] * 4
    assert order == ["first", "urgent", "second", "third"]


def test_who_leaves_the_line_holds_nothing(
    serve: Serve, capped: Route, events: Events, pool: ThreadPoolExecutor
) -> None:
    client = serve()
    running = [pool.submit(client.chat) for _request in range(2)]
    time.sleep(0.1)
    with httpx.Client(timeout=0.2) as http, pytest.raises(httpx.ReadTimeout):
        Client(client.url, http=http).chat()
    assert [answer.result().status_code for answer in running] == [200] * 2

    assert client.chat().status_code == 200
    assert len(events.all()) == 3

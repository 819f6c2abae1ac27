"""Clients that go away: their model server is told, and what they used is recorded."""

import contextlib
import time

import httpx
import pytest

from apps.keys.models import ApiKey, Limit
from apps.routes.models import Route
from tests.factories import LimitFactory
from tests.gateway.conftest import Client, Events, Serve
from tests.support.fake_model_server import FakeModelServer, Script, wait_until


def leave_after(client: Client, chunks: int) -> None:
    """Read so many content chunks of a stream and close the connection."""
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    headers = {"authorization": f"Bearer {client.secret}"}
    with httpx.stream(
        "POST", f"{client.url}/v1/chat/completions", json=body, headers=headers
    ) as response:
        lines = (line for line in response.iter_lines() if '"tick"' in line)
        for _ in range(chunks):
            next(lines)


def leave_while_waiting(client: Client, *, stream: bool) -> None:
    with contextlib.suppress(httpx.ReadTimeout):
        body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
        httpx.post(
            f"{client.url}/v1/chat/completions",
            json=body,
            headers={"authorization": f"Bearer {client.secret}"},
            timeout=0.5,
        )


def test_a_stream_that_is_left_stops_upstream_and_is_booked_so_far(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer, events: Events
) -> None:
    model_server.script = Script(tokens=("tick",) * 1000, gap=0.01)

    leave_after(serve(), 20)

    assert model_server.seen[0].left.wait(1)
    event = events.only()
    assert (event["status"], event["is_estimated"]) == ("cancelled", True)
    assert 20 <= event["output_tokens"] < 200
    assert event["cost_picos"] is not None
    assert event["cost_picos"] > 0
    assert event["attempts"][-1]["error"] == "client_gone"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_while_it_waits_stops_upstream(
    serve: Serve,
    key: ApiKey,
    route: Route,
    model_server: FakeModelServer,
    events: Events,
    stream: bool,
) -> None:
    model_server.script = Script(headers_delay=30)

    leave_while_waiting(serve(), stream=stream)

    assert model_server.seen[0].left.wait(1)
    assert events.only()["status"] == "cancelled"


def test_the_slot_of_a_client_that_left_is_free_at_once(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer
) -> None:
    LimitFactory.create(key=key, kind=Limit.Kind.CONCURRENCY, value=1)
    model_server.script = Script(tokens=("tick",) * 1000, gap=0.01)
    client = serve()

    leave_after(client, 1)
    model_server.script = Script()

    wait_until(lambda: client.chat().status_code == 200, seconds=1)


def test_the_first_chunk_is_there_long_before_the_last(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer
) -> None:
    model_server.script = Script(tokens=("tick",) * 20, gap=0.1)
    client = serve()
    client.chat()  # the key is known from here on

    started = time.monotonic()
    leave_after(client, 1)

    assert time.monotonic() - started < 1

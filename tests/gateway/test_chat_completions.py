"""`POST /v1/chat/completions`, whole and streamed."""

import orjson
import pytest

from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.gateway.conftest import HELLO_COST, Events, Serve
from tests.support.fake_model_server import PROMPT_TOKENS, FakeModelServer, Script


def sse(text: str) -> list[str]:
    """Data of the events of a stream."""
    return [block.removeprefix("data: ") for block in text.split("\n\n") if block]


def text_of(events: list[str]) -> str:
    chunks = [orjson.loads(event) for event in events if event != "[DONE]"]
    return "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )


def test_an_answer_passes_and_is_recorded_with_its_cost(
    serve: Serve, key: ApiKey, route: Route, events: Events
) -> None:
    response = serve().chat()

    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "Hello world"
    assert response.json()["usage"]["total_tokens"] == PROMPT_TOKENS + 2
    assert response.headers["x-request-id"]
    assert response.headers["x-inferadmin-target"].endswith("/upstream")
    event = events.only()
    assert (event["status"], event["http_status"]) == ("ok", 200)
    assert (event["input_tokens"], event["output_tokens"]) == (PROMPT_TOKENS, 2)
    assert event["cost_picos"] == HELLO_COST
    assert event["is_estimated"] is False
    assert (event["key_id"], event["route_id"]) == (key.pk, route.pk)
    assert event["request_id"] == response.headers["x-request-id"]
    assert [attempt["status"] for attempt in event["attempts"]] == ["ok"]


def test_unknown_fields_reach_the_server_untouched(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer
) -> None:
    wish = {"shape": [1, 2.5, None], "text": "Grüße"}

    serve().chat(some_new_field=wish, temperature=0)

    (seen,) = model_server.seen
    assert seen.body["some_new_field"] == wish
    assert seen.body["temperature"] == 0
    assert seen.body["model"] == "upstream"


def test_a_stream_passes_and_hides_the_usage_that_nobody_asked_for(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer, events: Events
) -> None:
    response = serve().chat(stream=True)

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    found = sse(response.text)
    assert text_of(found) == "Hello world"
    assert found[-1] == "[DONE]"
    assert "usage" not in response.text
    assert model_server.seen[0].body["stream_options"] == {"include_usage": True}
    event = events.only()
    assert (event["status"], event["is_stream"], event["cost_picos"]) == ("ok", True, HELLO_COST)
    assert event["first_token_seconds"] is not None


def test_a_client_that_asks_for_usage_gets_it(serve: Serve, key: ApiKey, route: Route) -> None:
    response = serve().chat(stream=True, stream_options={"include_usage": True})

    last = orjson.loads(sse(response.text)[-2])
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize("usage", ["every", "none"])
def test_usage_in_every_chunk_is_a_running_total_and_none_is_estimated(
    serve: Serve,
    key: ApiKey,
    route: Route,
    model_server: FakeModelServer,
    events: Events,
    usage: str,
) -> None:
    model_server.script = Script(tokens=("a", "b", "c"), usage=usage)  # type: ignore[arg-type]

    response = serve().chat(stream=True)

    assert text_of(sse(response.text)) == "abc"
    assert "usage" not in response.text
    event = events.only()
    assert event["output_tokens"] == 3
    assert event["is_estimated"] is (usage == "none")


def test_usage_is_added_to_an_answer_that_has_none(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer, events: Events
) -> None:
    model_server.script = Script(usage="none")

    body = serve().chat().json()

    assert body["usage"]["total_tokens"] > 2
    assert events.only()["is_estimated"] is True


@pytest.mark.parametrize(
    "script",
    [
        Script(line_end=b"\r\n"),
        Script(line_end=b"\r"),
        Script(prefix=b"data:"),
        Script(comments=True),
        Script(sends_done=False),
        Script(sends_finish_reason=False),
        Script(piece_bytes=1, tokens=("Grüße", " 世界", " 👋")),
    ],
    ids=["crlf", "cr", "no-space", "comments", "no-done", "no-finish", "cut-anywhere"],
)
def test_every_way_to_write_a_stream_comes_out_the_same(
    serve: Serve,
    key: ApiKey,
    route: Route,
    model_server: FakeModelServer,
    events: Events,
    script: Script,
) -> None:
    model_server.script = script

    response = serve().chat(stream=True)

    found = sse(response.text)
    assert text_of(found) == "".join(script.tokens)
    assert found[-1] == "[DONE]"
    assert "\r" not in response.text
    assert events.only()["status"] == "ok"

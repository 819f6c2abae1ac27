"""Anthropic's Messages API in front of servers that speak OpenAI's: bodies and events."""

from typing import Any

import anthropic
import orjson
import pytest

from apps.core.errors import InvalidRequestError, UpstreamError
from apps.gateway.adapters.contract import Answer, Chunk
from apps.gateway.fronts.anthropic import AnthropicFront
from apps.gateway.orders import Order
from apps.gateway.sse import EventParser
from apps.gateway.usage import Usage
from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.factories import LimitFactory
from tests.gateway.conftest import SECRET, Events, Serve
from tests.support.fake_model_server import PROMPT_TOKENS, FakeModelServer, Script

FRONT = AnthropicFront()
ASK: dict[str, Any] = {
    "model": "chat",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hi"}],
}


def order_of(**fields: Any) -> Order:
    return FRONT.order_of({**ASK, **fields}, {})


def test_roles_tools_and_images_are_put_into_openai_words() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    order = order_of(
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Where?"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "x"},
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "t1", "name": "find", "input": {"city": "Bonn"}},
                    {"type": "tool_use", "id": "t2", "name": "find", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "found"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "is_error": True,
                        "content": [{"type": "text", "text": "nothing"}],
                    },
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
        tools=[{"name": "find", "description": "Finds", "input_schema": schema}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        stop_sequences=["END"],
        temperature=0.5,
        top_k=4,
        metadata={"user_id": "u-1"},
    )

    assert order.body == {
        "model": "chat",
        "max_tokens": 100,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Where?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ],
            },
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [
                    {
                        "id": "t1",
                        "type": "function",
                        "function": {"name": "find", "arguments": '{"city":"Bonn"}'},
                    },
                    {
                        "id": "t2",
                        "type": "function",
                        "function": {"name": "find", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": "found"},
            {"role": "tool", "tool_call_id": "t2", "content": "Error: nothing"},
            {"role": "user", "content": "And now?"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "find", "description": "Finds", "parameters": schema},
            }
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "stop": ["END"],
        "temperature": 0.5,
        "top_k": 4,
        "user": "u-1",
    }


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [7]}, "messages.0.role"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "messages.0.content.0"),
        (
            {"messages": [{"role": "user", "content": [{"type": "video"}]}]},
            "messages.0.content.0.type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages.0.content.0.text",
        ),
        ({"system": 7}, "system"),
        ({"tools": [{"name": "x", "type": "web_search_20250305"}]}, "tools.0.type"),
        ({"tools": [{"name": "x"}], "tool_choice": {"type": "many"}}, "tool_choice.type"),
        ({"metadata": []}, "metadata"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_bad_input_names_its_field(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        order_of(**fields)

    assert list(refused.value.fields) == [named]


@pytest.mark.parametrize(
    ("reason", "message", "told"),
    [
        ("stop", {"content": "Hi"}, "end_turn"),
        ("length", {"content": "Hi"}, "max_tokens"),
        ("content_filter", {"content": ""}, "refusal"),
        ("tool_calls", {"tool_calls": [{"id": "t"}]}, "tool_use"),
        ("stop", {"tool_calls": [{"id": "t"}]}, "tool_use"),
        (None, {"content": "Hi"}, "end_turn"),
    ],
)
def test_why_it_stopped(reason: str | None, message: dict[str, Any], told: str) -> None:
    body = orjson.dumps({"choices": [{"finish_reason": reason, "message": message}]})

    answer = orjson.loads(FRONT.whole(order_of(), Answer(body, Usage(1, 1))))

    assert answer["stop_reason"] == told


def events_of(*chunks: dict[str, Any], error: UpstreamError | None = None) -> list[dict[str, Any]]:
    presenter = FRONT.presenter(order_of(stream=True), "openai")
    raw = b"".join(presenter.take([Chunk(orjson.dumps(chunk), True)]) for chunk in chunks)
    raw += presenter.fail(error) if error else presenter.end()
    found = EventParser().feed(raw)
    assert all(event.name == orjson.loads(event.data)["type"] for event in found)
    return [orjson.loads(event.data) for event in found]


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def called(index: int, arguments: str, **function: str) -> dict[str, Any]:
    head = {"id": f"t{index}"} if function else {}
    call = {"index": index, **head, "function": {**function, "arguments": arguments}}
    return delta(tool_calls=[call])


def test_mixed_tool_calls_come_out_one_after_the_other() -> None:
    events = events_of(
        delta(role="assistant", content="Let me"),
        called(0, "", name="find"),
        called(1, '{"b"', name="look"),
        called(0, '{"a":1}'),
        called(1, ":2}"),
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}},
    )

    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip
    assert [event["index"] for event in events if "index" in event] == [0] * 3 + [1] * 3 + [2] * 3
    assert [event["content_block"].get("id") for event in events if "content_block" in event] == [
        None, "t0", "t1",
    ]  # fmt: skip
    parts = [
        event["delta"].get("partial_json")
        for event in events
        if "index" in event and "delta" in event
    ]
    assert parts == [None, '{"a":1}', '{"b":2}']
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-2]["usage"] == Usage(7, 5).to_anthropic()


def test_a_stream_that_breaks_off_ends_with_an_error() -> None:
    events = events_of(delta(content="Hi"), error=UpstreamError("it broke"))

    assert events[-1] == {"type": "error", "error": {"type": "api_error", "message": "it broke"}}


@pytest.fixture
def client(serve: Serve, key: ApiKey, route: Route) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key=SECRET, base_url=serve().url, max_retries=0)


def ask(client: anthropic.Anthropic) -> anthropic.types.Message:
    return client.messages.create(
        model="chat", max_tokens=50, messages=[{"role": "user", "content": "Hi"}]
    )


def test_the_public_client_gets_a_message(client: anthropic.Anthropic, events: Events) -> None:
    message = ask(client)

    (block,) = message.content
    assert (block.type, getattr(block, "text", "")) == ("text", "Hello world")
    assert (message.stop_reason, message.model) == ("end_turn", "chat")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (PROMPT_TOKENS, 2)
    event = events.only()
    assert (event["endpoint"], event["status"], event["output_tokens"]) == ("messages", "ok", 2)


@pytest.mark.parametrize("script", [Script(), Script(usage="every"), Script(piece_bytes=3)])
def test_the_public_client_streams(
    client: anthropic.Anthropic, events: Events, model_server: FakeModelServer, script: Script
) -> None:
    model_server.script = script

    with client.messages.stream(
        model="chat", max_tokens=50, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()

    assert text == "Hello world"
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens == 2
    event = events.only()
    assert (event["endpoint"], event["is_stream"], event["input_tokens"]) == ("messages", True, 7)


def test_the_public_client_counts_tokens(client: anthropic.Anthropic, events: Events) -> None:
    found = client.messages.count_tokens(
        model="chat", messages=[{"role": "user", "content": "Hello"}]
    )

    assert 2 <= found.input_tokens <= 20
    assert events.all() == []


def test_the_public_client_understands_errors(
    client: anthropic.Anthropic, key: ApiKey, model_server: FakeModelServer
) -> None:
    with pytest.raises(anthropic.NotFoundError, match="there is no model"):
        client.messages.count_tokens(model="none", messages=[{"role": "user", "content": "Hi"}])
    with pytest.raises(anthropic.AuthenticationError):
        ask(client.with_options(api_key="sk-ant-of-another"))

    model_server.script = Script(status=500)
    with pytest.raises(anthropic.APIStatusError) as failed:
        ask(client)
    assert failed.value.status_code == 502
    assert failed.value.body == {
        "type": "error",
        "error": {"type": "api_error", "message": "the model server failed (status 500)"},
    }


def test_limits_are_told_in_anthropics_words(client: anthropic.Anthropic, key: ApiKey) -> None:
    LimitFactory.create(key=key, value=1)
    ask(client)

    with pytest.raises(anthropic.RateLimitError) as refused:
        ask(client)

    assert refused.value.response.headers["retry-after"]
    assert refused.value.body["error"]["type"] == "rate_limit_error"  # type: ignore[index]

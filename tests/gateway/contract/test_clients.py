"""The public clients of OpenAI and Anthropic, each in front of Anthropic's and Gemini's API."""

from collections.abc import Iterator

import anthropic
import openai
import orjson
import pytest

from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.factories import RouteFactory, ServerFactory, TargetFactory
from tests.gateway.conftest import SECRET, Events, Serve
from tests.support.fake_paid_api import FakePaidApi

TOOL_SCHEMA: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}}
# Prompt, of it read from and written to a cache, and completion.
COUNTS = {"anthropic": (100, 40, 9), "gemini": (100, 40, 9)}
both_apis = pytest.mark.parametrize("protocol", ["anthropic", "gemini"])


@pytest.fixture
def api(transactional_db: None) -> Iterator[FakePaidApi]:
    with FakePaidApi().served() as served:
        yield served


@pytest.fixture
def route(protocol: str, api: FakePaidApi) -> Route:
    server = ServerFactory.create(kind=protocol, url=api.url)
    route = RouteFactory.create(name="chat")
    TargetFactory.create(route=route, server=server, upstream_model="m-x", protocol=protocol)
    return route


@pytest.fixture
def of_openai(serve: Serve, key: ApiKey, route: Route) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=SECRET, base_url=f"{serve().url}/v1", max_retries=0) as client:
        yield client


@pytest.fixture
def of_anthropic(serve: Serve, key: ApiKey, route: Route) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key=SECRET, base_url=serve().url, max_retries=0) as client:
        yield client


def counted(events: Events) -> tuple[int, int, int]:
    event = events.only()
    assert not event["is_estimated"]
    return event["input_tokens"], event["cached_input_tokens"], event["output_tokens"]


@both_apis
def test_openai_text(
    protocol: str, api: FakePaidApi, of_openai: openai.OpenAI, events: Events
) -> None:
    answer = of_openai.chat.completions.create(
        model="chat", messages=[{"role": "user", "content": "Hi"}]
    )

    assert answer.choices[0].message.content == "Hello world"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    told = answer.usage.prompt_tokens, answer.usage.prompt_tokens_details.cached_tokens
    assert (*told, answer.usage.completion_tokens) == COUNTS[protocol] == counted(events)
    assert SECRET not in str(api.seen)


@both_apis
def test_openai_stream(protocol: str, of_openai: openai.OpenAI, events: Events) -> None:
    chunks = list(
        of_openai.chat.completions.create(
            model="chat",
            messages=[{"role": "user", "content": "Hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == "Hello world"
    assert choices[-1].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 109
    assert counted(events) == COUNTS[protocol]


@both_apis
def test_openai_tools(protocol: str, api: FakePaidApi, of_openai: openai.OpenAI) -> None:
    api.answers = "tools"

    answer = of_openai.chat.completions.create(
        model="chat",
        messages=[{"role": "user", "content": "Weather?"}],
        tools=[{"type": "function", "function": {"name": "weather", "parameters": TOOL_SCHEMA}}],
    )

    assert answer.choices[0].finish_reason == "tool_calls"
    calls = [call.to_dict() for call in answer.choices[0].message.tool_calls or []]
    arguments = [orjson.loads(call["function"]["arguments"]) for call in calls]  # type: ignore[index]
    assert arguments == [{"city": "Bonn"}, {"city": "Köln"}]


@both_apis
def test_openai_tools_streamed(protocol: str, api: FakePaidApi, of_openai: openai.OpenAI) -> None:
    api.answers = "tools"

    with of_openai.chat.completions.stream(
        model="chat", messages=[{"role": "user", "content": "Weather?"}]
    ) as stream:
        choice = stream.get_final_completion().choices[0]

    assert choice.finish_reason == "tool_calls"
    calls = choice.message.tool_calls or []
    assert [orjson.loads(call.function.arguments)["city"] for call in calls] == ["Bonn", "Köln"]
    assert len({call.id for call in calls}) == 2


@both_apis
@pytest.mark.parametrize("answers", ["text", "tools"])
def test_anthropic_streamed_and_whole(
    protocol: str, answers: str, api: FakePaidApi, of_anthropic: anthropic.Anthropic
) -> None:
    api.answers = answers
    messages: list[anthropic.types.MessageParam] = [{"role": "user", "content": "Hi"}]

    whole = of_anthropic.messages.create(model="chat", max_tokens=99, messages=messages)
    with of_anthropic.messages.stream(model="chat", max_tokens=99, messages=messages) as stream:
        streamed = stream.get_final_message()

    for message in (whole, streamed):
        if answers == "text":
            assert [block.to_dict()["text"] for block in message.content] == ["Hello world"]
            assert message.stop_reason == "end_turn"
        else:
            inputs = [block.to_dict()["input"] for block in message.content]
            assert inputs == [{"city": "Bonn"}, {"city": "Köln"}]
            assert message.stop_reason == "tool_use"
        assert message.usage.output_tokens == 9
        assert message.usage.cache_read_input_tokens == 40


@pytest.mark.parametrize("protocol", ["anthropic"])
def test_what_is_anthropics_own_reaches_anthropic_unharmed(
    api: FakePaidApi, of_anthropic: anthropic.Anthropic
) -> None:
    answer = of_anthropic.messages.create(
        model="chat",
        max_tokens=99,
        messages=[{"role": "user", "content": "Hi"}],
        system=[{"type": "text", "text": "Be brief", "cache_control": {"type": "ephemeral"}}],
        extra_headers={"anthropic-beta": "some-beta", "anthropic-version": "2099-01-01"},
        extra_body={"a_field_of_tomorrow": 1},
    )

    (seen,) = api.seen
    assert seen.path == "/v1/messages"
    assert seen.headers["anthropic-beta"] == "some-beta"
    assert seen.headers["anthropic-version"] == "2099-01-01"
    assert seen.body["model"] == "m-x"
    assert seen.body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert seen.body["a_field_of_tomorrow"] == 1
    assert answer.id == "msg_upstream"


@both_apis
def test_overloaded_inside_a_200_is_an_error_before_any_content(
    protocol: str, api: FakePaidApi, route: Route, of_openai: openai.OpenAI
) -> None:
    api.answers = "overloaded"

    with pytest.raises(openai.APIStatusError) as caught:
        of_openai.chat.completions.create(
            model="chat", messages=[{"role": "user", "content": "Hi"}], stream=True
        )

    assert caught.value.status_code in (502, 503)
    assert caught.value.code == "upstream_busy"

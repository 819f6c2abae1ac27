"""The loop on real parts: a key, a real model, an answer, its record with tokens and cost."""

import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.support.stack import Stack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUESTION: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is a cat?"}]
# Prices of the seed, USD for a million tokens: input, output.
PRICES = {
    "smollm2": (Decimal("0.05"), Decimal("0.20")),
    "smollm2-llamacpp": (Decimal("0.15"), Decimal("0.60")),
    "minilm": (Decimal("0.02"), Decimal(0)),
}


@pytest.fixture
def client(stack: Stack) -> Iterator[openai.OpenAI]:
    """The public client, told nothing but address and key."""
    key = stack.credentials["api_key"]
    with openai.OpenAI(base_url=f"{stack.url}/v1", api_key=key, max_retries=0) as client:
        yield client


@pytest.fixture
def mark() -> dict[str, str]:
    """A header that makes the request findable in the ledger."""
    return {"X-Request-ID": uuid.uuid4().hex}


def record_of(stack: Stack, mark: dict[str, str]) -> dict[str, Any]:
    """The one usage record of a request."""

    def look() -> list[dict[str, Any]]:
        with stack.api() as api:
            answer = api.get("/usage", params={"request_id": mark["X-Request-ID"]})
        found: list[dict[str, Any]] = answer.raise_for_status().json()["results"]
        return found

    records = eventually(look, seconds=15)
    assert len(records) == 1
    return records[0]


def assert_priced(
    record: dict[str, Any], route: str, input_tokens: int, output_tokens: int
) -> None:
    input_price, output_price = PRICES[route]
    cost = (input_tokens * input_price + output_tokens * output_price) / 1_000_000
    assert (record["input_tokens"], record["output_tokens"]) == (input_tokens, output_tokens)
    assert Decimal(record["cost"]) == cost
    assert record["currency"] == "USD"
    assert record["is_estimated"] is False


@pytest.mark.parametrize("route", ["smollm2", "smollm2-llamacpp"])
def test_chat_is_answered_recorded_and_priced(
    stack: Stack, client: openai.OpenAI, mark: dict[str, str], route: str
) -> None:
    answer = client.chat.completions.create(
        model=route, messages=QUESTION, max_tokens=12, extra_headers=mark
    )

    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12
    record = record_of(stack, mark)
    assert (record["route_name"], record["status"]) == (route, "ok")
    assert_priced(record, route, answer.usage.prompt_tokens, answer.usage.completion_tokens)


@pytest.mark.parametrize("route", ["smollm2", "smollm2-llamacpp"])
def test_stream_arrives_piece_by_piece_and_is_recorded_once(
    stack: Stack, client: openai.OpenAI, mark: dict[str, str], route: str
) -> None:
    stream = client.chat.completions.create(
        model=route,
        messages=QUESTION,
        max_tokens=12,
        stream=True,
        stream_options={"include_usage": True},
        extra_headers=mark,
    )
    chunks = list(stream)

    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert len([text for text in texts if text]) > 5
    usage = chunks[-1].usage
    assert usage is not None
    record = record_of(stack, mark)
    assert record["is_stream"] is True
    assert_priced(record, route, usage.prompt_tokens, usage.completion_tokens)


def test_own_hardware_answers_first(
    stack: Stack, client: openai.OpenAI, mark: dict[str, str]
) -> None:
    client.chat.completions.create(
        model="smollm2", messages=QUESTION, max_tokens=2, extra_headers=mark
    )

    assert record_of(stack, mark)["server_name"] == "triton-local"


def test_embeddings_are_counted_and_priced(
    stack: Stack, client: openai.OpenAI, mark: dict[str, str]
) -> None:
    answer = client.embeddings.create(
        model="minilm", input=["a cat", "a dog and a cat"], extra_headers=mark
    )

    assert [len(item.embedding) for item in answer.data] == [384, 384]
    assert answer.usage.prompt_tokens == 11
    assert_priced(record_of(stack, mark), "minilm", 11, 0)


def test_completions_continue_a_text(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="smollm2", prompt="Once upon a", max_tokens=5)

    assert answer.choices[0].text
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5


def test_models_are_the_routes_of_the_key(client: openai.OpenAI) -> None:
    names = {model.id for model in client.models.list()}

    assert {"smollm2", "smollm2-llamacpp", "minilm"} <= names


def test_metrics_probes_and_schema_answer(stack: Stack) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert httpx.get(stack.url + path).status_code == 200, path
    with stack.api() as api:
        assert api.get("/../schema").status_code == 200

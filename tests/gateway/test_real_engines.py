"""A real Triton and a real llama.cpp behind the gateway, through the public client."""

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from apps.core.secrets import encrypt
from apps.fleet.models import Server
from apps.keys.models import ApiKey
from apps.routes.models import Target
from inferadmin.embedded.llamacpp import MODEL_NAME, LlamaCpp
from inferadmin.embedded.triton import Triton
from tests.factories import (
    PlacementFactory,
    RouteFactory,
    ServedModelFactory,
    ServerFactory,
    TargetFactory,
)
from tests.gateway.conftest import SECRET, Events, Serve
from tests.support.fake_model_server import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("key")]

ASK: Any = [{"role": "user", "content": "Name one colour. Answer with one word."}]


@pytest.fixture
def triton_server(transactional_db: None, triton: Triton) -> Iterator[Server]:
    """The real Triton with `smollm2` and `minilm` loaded, and unloaded afterwards."""
    server = ServerFactory.create(name="triton", kind=Server.Kind.TRITON, url=triton.url)
    for name in ("smollm2", "minilm"):
        _repository(triton, name, "load")
        placement = PlacementFactory.create(
            server=server, model=ServedModelFactory.create(name=name)
        )
        placement.versions = [{"number": 1, "state": "READY", "reason": ""}]
        placement.save()
    yield server
    for name in ("smollm2", "minilm"):
        _repository(triton, name, "unload")


def _repository(triton: Triton, name: str, verb: str) -> None:
    url = f"{triton.url}/v2/repository/models/{name}/{verb}"
    httpx.post(url, json={}, timeout=120).raise_for_status()


@pytest.fixture
def client(serve: Serve) -> Iterator[openai.OpenAI]:
    """Lazy: it starts the gateway when it is first used, after the rows are there."""
    with openai.OpenAI(api_key=SECRET, base_url="http://unset", max_retries=0) as made:
        yield made


def start(client: openai.OpenAI, serve: Serve) -> openai.OpenAI:
    client.base_url = f"{serve().url}/v1"
    return client


def test_chat_on_triton_whole_and_streamed(
    client: openai.OpenAI, serve: Serve, triton_server: Server, key: ApiKey, events: Events
) -> None:
    route = RouteFactory.create(name="smollm2")
    TargetFactory.create(
        route=route,
        server=triton_server,
        upstream_model="smollm2",
        version=1,
        protocol=Target.Protocol.TRITON_GENERATE,
    )
    start(client, serve)

    whole = client.chat.completions.create(model="smollm2", messages=ASK, max_tokens=8, seed=1)
    chunks = list(
        client.chat.completions.create(
            model="smollm2",
            messages=ASK,
            max_tokens=8,
            seed=1,
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    assert whole.choices[0].message.content
    assert whole.usage is not None
    assert whole.usage.prompt_tokens > 10
    assert 1 <= whole.usage.completion_tokens <= 8
    assert sum(bool(chunk.choices) for chunk in chunks) > 2
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    wait_until(lambda: len(events.all()) == 2)
    assert [event["is_estimated"] for event in events.all()] == [False, False]
    assert {event["version"] for event in events.all()} == {1}


def test_embeddings_on_triton(
    client: openai.OpenAI, serve: Serve, triton_server: Server, events: Events
) -> None:
    route = RouteFactory.create(name="minilm")
    TargetFactory.create(
        route=route,
        server=triton_server,
        upstream_model="minilm",
        protocol=Target.Protocol.TRITON_INFER,
    )
    start(client, serve)

    answer = client.embeddings.create(model="minilm", input=["a cat", "a kitten", "tax law"])

    cat, kitten, law = (item.embedding for item in answer.data)
    assert len(cat) == 384
    assert _dot(cat, kitten) > _dot(cat, law)
    assert events.only()["input_tokens"] == answer.usage.prompt_tokens > 0


def _dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def test_chat_on_llama_cpp(
    client: openai.OpenAI, serve: Serve, llama_cpp: LlamaCpp, key: ApiKey, events: Events
) -> None:
    server = ServerFactory.create(
        kind=Server.Kind.LLAMA_CPP,
        url=llama_cpp.url,
        api_key_encrypted=encrypt(llama_cpp.api_key),
    )
    TargetFactory.create(
        route=RouteFactory.create(name="smollm2"), server=server, upstream_model=MODEL_NAME
    )
    start(client, serve)

    whole = client.chat.completions.create(model="smollm2", messages=ASK, max_tokens=8)
    text = "".join(
        chunk.choices[0].delta.content or ""
        for chunk in client.chat.completions.create(
            model="smollm2", messages=ASK, max_tokens=8, stream=True
        )
        if chunk.choices
    )

    assert whole.choices[0].message.content
    assert text
    wait_until(lambda: len(events.all()) == 2)
    assert all(event["output_tokens"] > 0 for event in events.all())
    assert not any(event["is_estimated"] for event in events.all())

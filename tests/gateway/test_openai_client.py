"""The public `openai` client, unchanged."""

from collections.abc import Callable, Iterator

import openai
import pytest

from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.gateway.conftest import SECRET, Serve
from tests.support.fake_model_server import PROMPT_TOKENS, FakeModelServer, Script

Connect = Callable[[], openai.OpenAI]


@pytest.fixture
def connect(serve: Serve, key: ApiKey, route: Route) -> Iterator[Connect]:
    made: list[openai.OpenAI] = []

    def make() -> openai.OpenAI:
        url = f"{serve().url}/v1"
        made.append(openai.OpenAI(api_key=SECRET, base_url=url, max_retries=0))
        return made[-1]

    yield make
    for client in made:
        client.close()


def test_chat(connect: Connect) -> None:
    answer = connect().chat.completions.create(
        model="chat", messages=[{"role": "user", "content": "Hi"}]
    )

    assert answer.choices[0].message.content == "Hello world"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == PROMPT_TOKENS


@pytest.mark.parametrize(
    "script", [Script(), Script(comments=True), Script(line_end=b"\r\n"), Script(sends_done=False)]
)
def test_streamed_chat(connect: Connect, model_server: FakeModelServer, script: Script) -> None:
    model_server.script = script
    stream = connect().chat.completions.create(
        model="chat",
        messages=[{"role": "user", "content": "Hi"}],
        stream=True,
        stream_options={"include_usage": True},
    )

    chunks = list(stream)

    assert (
        "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
        == "Hello world"
    )
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 2


def test_completions_embeddings_and_models(connect: Connect) -> None:
    client = connect()

    assert client.completions.create(model="chat", prompt="Hi").choices[0].text == "Hello world"
    vector = client.embeddings.create(model="chat", input="Hi", encoding_format="float").data[0]
    assert vector.embedding == [0.5, -0.5]
    assert [model.id for model in client.models.list()] == ["chat"]
    assert client.models.retrieve("chat").owned_by == "inferadmin"


def test_errors_are_of_the_kind_that_the_client_knows(
    connect: Connect, model_server: FakeModelServer
) -> None:
    client = connect()

    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="none", messages=[{"role": "user", "content": "Hi"}])
    assert caught.value.code == "model_not_found"

    model_server.script = Script(error_after=1)
    with (
        pytest.raises(openai.APIError),
        client.chat.completions.create(
            model="chat", messages=[{"role": "user", "content": "Hi"}], stream=True
        ) as stream,
    ):
        list(stream)

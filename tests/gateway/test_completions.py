"""`POST /v1/completions`, whole and streamed."""

import orjson

from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.gateway.conftest import HELLO_COST, Events, Serve
from tests.gateway.test_chat_completions import sse
from tests.support.fake_model_server import FakeModelServer


def test_a_text_is_continued(serve: Serve, key: ApiKey, route: Route, events: Events) -> None:
    response = serve().post("/v1/completions", {"model": "chat", "prompt": "Say"})

    assert response.json()["choices"][0]["text"] == "Hello world"
    event = events.only()
    assert (event["endpoint"], event["cost_picos"]) == ("completions", HELLO_COST)


def test_a_streamed_text_is_counted(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer, events: Events
) -> None:
    response = serve().post("/v1/completions", {"model": "chat", "prompt": "Say", "stream": True})

    *chunks, done = sse(response.text)
    texts = [choice["text"] for chunk in chunks for choice in orjson.loads(chunk)["choices"]]
    assert "".join(texts) == "Hello world"
    assert done == "[DONE]"
    assert model_server.seen[0].path == "/v1/completions"
    assert events.only()["output_tokens"] == 2

"""`POST /v1/embeddings`."""

from apps.keys.models import ApiKey
from apps.routes.models import Route, Target
from tests.gateway.conftest import Events, Serve
from tests.support.fake_model_server import PROMPT_TOKENS


def test_a_text_becomes_a_vector(serve: Serve, key: ApiKey, route: Route, events: Events) -> None:
    response = serve().post("/v1/embeddings", {"model": "chat", "input": "Hello"})

    assert response.json()["data"][0]["embedding"] == [0.5, -0.5]
    event = events.only()
    assert (event["input_tokens"], event["output_tokens"]) == (PROMPT_TOKENS, 0)
    assert event["is_estimated"] is False


def test_a_language_model_says_what_it_answers_instead(
    serve: Serve, key: ApiKey, route: Route, events: Events
) -> None:
    Target.objects.update(protocol=Target.Protocol.TRITON_GENERATE)

    response = serve().post("/v1/embeddings", {"model": "chat", "input": "Hello"})

    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "endpoint_not_supported"
    assert "/v1/chat/completions" in error["message"]
    assert events.all() == []

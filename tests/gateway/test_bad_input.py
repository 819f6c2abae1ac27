"""Requests that are wrong: the right status, and words that name the field and what to do."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone

from apps.keys.models import ApiKey, Team
from apps.routes.models import Route
from tests.factories import RouteFactory
from tests.gateway.conftest import SECRET, Events, Serve
from tests.support.fake_model_server import FakeModelServer

MESSAGES = [{"role": "user", "content": "Hi"}]


def error(response: httpx.Response) -> dict[str, Any]:
    body: dict[str, Any] = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert response.headers["x-request-id"]
    return body["error"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/chat/completions", {"model": "chat"}, "messages"),
        ("/v1/chat/completions", {"model": "chat", "messages": []}, "messages"),
        ("/v1/chat/completions", {"model": "chat", "messages": "Hi"}, "messages"),
        ("/v1/chat/completions", {"model": "chat", "messages": ["Hi"]}, "messages.0"),
        ("/v1/chat/completions", {"messages": MESSAGES}, "model"),
        ("/v1/chat/completions", {"model": 7, "messages": MESSAGES}, "model"),
        ("/v1/chat/completions", {"model": "chat", "messages": MESSAGES, "stream": 1}, "stream"),
        ("/v1/chat/completions", {"model": "chat", "messages": MESSAGES, "n": 0}, "n"),
        (
            "/v1/chat/completions",
            {"model": "chat", "messages": MESSAGES, "max_tokens": "many"},
            "max_tokens",
        ),
        (
            "/v1/chat/completions",
            {"model": "chat", "messages": MESSAGES, "max_completion_tokens": 1, "max_tokens": 9},
            "max_tokens",
        ),
        (
            "/v1/chat/completions",
            {"model": "chat", "messages": MESSAGES, "max_tokens": 1, "n_predict": 9},
            "n_predict",
        ),
        (
            "/v1/chat/completions",
            {"model": "chat", "messages": MESSAGES, "n_predict": -1},
            "n_predict",
        ),
        ("/v1/chat/completions", {"model": "chat", "messages": MESSAGES, "n_cmpl": 0}, "n_cmpl"),
        ("/v1/completions", {"model": "chat"}, "prompt"),
        ("/v1/embeddings", {"model": "chat", "input": []}, "input"),
    ],
)
def test_a_field_that_is_wrong_is_named(
    serve: Serve, key: ApiKey, route: Route, events: Events, path: str, body: Any, param: str
) -> None:
    response = serve().post(path, body)

    assert response.status_code == 400
    found = error(response)
    assert found["param"] == param
    assert found["type"] == "invalid_request_error"
    assert found["message"].startswith(param)
    assert events.all() == []


@pytest.mark.parametrize("body", [b'{"model": ', b"", b"\xff\xfe", b"[1]", b"null"])
def test_a_body_that_is_no_json_object_is_told_so(
    serve: Serve, key: ApiKey, route: Route, body: bytes
) -> None:
    client = serve()
    headers = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}

    response = client.http.post(f"{client.url}/v1/chat/completions", content=body, headers=headers)

    assert response.status_code == 400
    assert error(response)["code"] in {"malformed_json", "invalid_body", "invalid_request"}


CHAT_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"temperature": 2.1}, "temperature"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 1.5}, "top_p"),
    ({"frequency_penalty": 2.5}, "frequency_penalty"),
    ({"presence_penalty": -3}, "presence_penalty"),
    ({"seed": 1.5}, "seed"),
    ({"seed": False}, "seed"),
    ({"stop": 5}, "stop"),
    ({"stop": ["a", 5]}, "stop"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_completion_tokens": 0}, "max_completion_tokens"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"tools": 5}, "tools"),
    ({"tools": {"type": "function"}}, "tools"),
    ({"tools": [{"type": "function"}, "weather"]}, "tools.1"),
]


@pytest.mark.parametrize(("fields", "param"), CHAT_FIELDS)
def test_a_parameter_that_is_wrong_is_named_before_anything_is_held(
    serve: Serve,
    key: ApiKey,
    route: Route,
    model_server: FakeModelServer,
    events: Events,
    fields: dict[str, Any],
    param: str,
) -> None:
    response = serve().chat(**fields)

    assert response.status_code == 400
    found = error(response)
    assert (found["param"], found["code"]) == (param, "invalid_request")
    assert found["message"].startswith(param)
    assert model_server.seen == []
    assert events.all() == []


def test_the_allowed_range_is_told(serve: Serve, key: ApiKey, route: Route) -> None:
    client = serve()

    assert "from 0 to 2" in error(client.chat(temperature=3))["message"]
    assert "from -2 to 2" in error(client.chat(presence_penalty=3))["message"]
    assert "at most 4" in error(client.chat(stop=["x"] * 5))["message"]
    assert "from 1 to" in error(client.chat(max_tokens=0))["message"]


def test_completions_are_checked_as_chats_are(serve: Serve, key: ApiKey, route: Route) -> None:
    client = serve()

    for field, value in (("max_tokens", 0), ("temperature", 3), ("stop", {})):
        response = client.post("/v1/completions", {"model": "chat", "prompt": "Say", field: value})
        assert (response.status_code, error(response)["param"]) == (400, field)


def test_null_and_the_ends_of_a_range_are_let_through(
    serve: Serve, key: ApiKey, route: Route
) -> None:
    client = serve()
    names = ("temperature", "top_p", "stop", "seed", "frequency_penalty", "tools", "max_tokens")
    absent: dict[str, Any] = dict.fromkeys(names)

    assert client.chat(**absent).status_code == 200
    assert client.chat(temperature=2, top_p=0, presence_penalty=-2.0, seed=-1).status_code == 200
    assert client.chat(stop="x", max_tokens=1).status_code == 200
    assert client.chat(stop=["a", "b", "c", "d"], tools=[]).status_code == 200


@pytest.mark.parametrize(
    ("content", "param"),
    [
        (5, "messages.0.content"),
        ({"type": "text", "text": "Hi"}, "messages.0.content"),
        (["Hi"], "messages.0.content.0"),
        ([{"text": "Hi"}], "messages.0.content.0.type"),
        ([{"type": 5}], "messages.0.content.0.type"),
        ([{"type": "text", "text": "Hi"}, {"type": "text"}], "messages.0.content.1.text"),
        ([{"type": "text", "text": ["Hi"]}], "messages.0.content.0.text"),
    ],
)
def test_content_that_is_wrong_is_named(
    serve: Serve, key: ApiKey, route: Route, events: Events, content: Any, param: str
) -> None:
    response = serve().chat(messages=[{"role": "user", "content": content}])

    assert (response.status_code, error(response)["param"]) == (400, param)
    assert events.all() == []


def test_an_image_and_a_message_without_content_reach_the_server(
    serve: Serve, key: ApiKey, route: Route, model_server: FakeModelServer
) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant"},
    ]

    assert serve().chat(messages=messages).status_code == 200
    assert model_server.seen[0].body["messages"] == messages


def test_a_body_of_five_megabytes_is_too_large(serve: Serve, key: ApiKey, route: Route) -> None:
    client = serve()

    response = client.chat(padding="x" * 5 * 1024 * 1024)

    assert response.status_code == 413
    assert error(response)["code"] == "body_too_large"
    assert client.chat().status_code == 200


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "missing_api_key"),
        ("Basic abc", "missing_api_key"),
        ("Bearer", "missing_api_key"),
        ("Bearer sk-openai-0123456789abcdef", "invalid_api_key"),
        ("Bearer sk-ia-0123456789abcdef", "invalid_api_key"),
    ],
)
def test_a_wrong_key_is_refused_and_not_repeated(
    serve: Serve, key: ApiKey, route: Route, header: str, code: str
) -> None:
    client = serve()

    response = client.http.get(f"{client.url}/v1/models", headers={"authorization": header})

    assert response.status_code == 401
    assert error(response)["code"] == code
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert "0123456789" not in response.text


@pytest.mark.parametrize("state", ["api_key_expired", "api_key_revoked", "team_suspended"])
def test_a_key_that_is_no_longer_good_says_why(
    serve: Serve, key: ApiKey, route: Route, state: str
) -> None:
    past = timezone.now() - timedelta(minutes=1)
    if state == "api_key_expired":
        ApiKey.objects.update(expires_at=past)
    elif state == "api_key_revoked":
        ApiKey.objects.update(revoked_at=past)
    else:
        Team.objects.update(is_active=False)

    response = serve().chat()

    assert response.status_code == (403 if state == "team_suspended" else 401)
    assert error(response)["code"] == state


def test_an_unknown_model_and_one_that_the_key_may_not_use(
    serve: Serve, key: ApiKey, route: Route
) -> None:
    key.allows_all_routes = False
    key.save()
    key.routes.add(RouteFactory.create(name="allowed"))
    client = serve()

    unknown, forbidden = client.chat("no/such:model"), client.chat("chat")

    assert (unknown.status_code, error(unknown)["code"]) == (404, "model_not_found")
    assert (forbidden.status_code, error(forbidden)["code"]) == (403, "model_not_allowed")
    assert error(unknown)["param"] == error(forbidden)["param"] == "model"


def test_a_route_without_targets_cannot_serve(serve: Serve, key: ApiKey) -> None:
    RouteFactory.create(name="chat")

    response = serve().chat()

    assert (response.status_code, error(response)["code"]) == (503, "no_target")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
        ("POST", "/v1/audio/speech", 404, "unknown_url"),
        ("GET", "/v1/", 404, "unknown_url"),
    ],
)
def test_wrong_methods_and_paths(
    serve: Serve, key: ApiKey, route: Route, method: str, path: str, status: int, code: str
) -> None:
    client = serve()

    response = client.http.request(
        method, f"{client.url}{path}", headers={"authorization": f"Bearer {SECRET}"}
    )

    assert (response.status_code, error(response)["code"]) == (status, code)
    assert ("allow" in response.headers) is (status == 405)


def test_more_requests_than_the_gateway_takes(
    serve: Serve, key: ApiKey, route: Route, settings: Any
) -> None:
    settings.GATEWAY_MAX_REQUESTS = 0

    response = serve().chat()

    assert response.status_code == 503
    assert error(response)["code"] == "too_many_requests_at_once"
    assert response.headers["retry-after"] == "1"

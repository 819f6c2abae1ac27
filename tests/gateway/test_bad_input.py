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

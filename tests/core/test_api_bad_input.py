"""Whatever is sent to the REST API, the answer is an error that says what to change."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.core.actors import SYSTEM
from apps.core.models import User
from apps.core.services import token_issue


@pytest.fixture
def client(viewer: User) -> APIClient:
    _token, secret = token_issue(actor=SYSTEM, user=viewer, name="tests")
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("[" * 50_000, id="nested too deeply"),
        pytest.param('{"\\ud800": 1}', id="half a character in a name"),
        pytest.param('{"name": "\\ud800"}', id="half a character in a value"),
        pytest.param('{"name": NaN}', id="no number"),
        pytest.param('{"name": ' + "9" * 5000 + "}", id="a number without end"),
        pytest.param('{"name"', id="cut"),
    ],
)
def test_a_body_that_cannot_be_read_is_malformed(client: APIClient, body: str) -> None:
    response = client.post("/api/v1/tokens", body, content_type="application/json")

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "malformed_json"


def test_a_body_past_the_limit_is_too_large(client: APIClient, settings: Any) -> None:
    settings.MAX_BODY_BYTES = 1000
    body = json.dumps({"name": "x" * 1000})

    response = client.post("/api/v1/tokens", body, content_type="application/json")

    assert response.status_code == 413
    assert response.json()["error"] == {
        "code": "body_too_large",
        "message": "the body is larger than 1000 bytes",
    }


@pytest.mark.parametrize("path", ["/api/", "/api/v1/", "/api/v1/nothing", "/api/v1/tokens/abc"])
def test_an_unknown_path_is_told_in_the_envelope(client: APIClient, path: str) -> None:
    for response in (client.get(path), client.post(path), APIClient(True).post(path)):
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "unknown_url"


@pytest.mark.parametrize("size", ["abc", "-1", "0", "1e5", "9" * 5000])
@pytest.mark.parametrize("path", ["/api/v1/tokens", "/api/v1/audit"])
def test_a_page_size_that_is_no_number_is_refused(client: APIClient, path: str, size: str) -> None:
    response = client.get(path, {"page_size": size})

    assert response.status_code == 400
    assert "page_size" in response.json()["error"]["fields"]

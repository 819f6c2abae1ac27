"""Looking at engines that are no Triton."""

import asyncio

import httpx
import pytest

from apps.fleet.asking import AskError
from apps.fleet.engines import engine_look
from apps.fleet.models import Server
from apps.fleet.reasons import stripped
from apps.fleet.sightings import ServerSeen

_MODELS = {"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"no": "id"}, "x", {"id": 3}]}


def _look(kind: str, answers: dict[str, httpx.Response], *, key: str = "sk-1") -> ServerSeen:
    """A look at a server that answers these paths; what it was asked is in `_asked`."""
    _asked.clear()

    def answer(request: httpx.Request) -> httpx.Response:
        _asked.append(request)
        return answers.get(request.url.path, httpx.Response(404))

    async def look() -> ServerSeen:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            server = Server(pk=1, kind=kind, url="http://engine")
            return await engine_look(http, server, key)

    return asyncio.run(look())


_asked: list[httpx.Request] = []


@pytest.mark.parametrize(
    ("kind", "paths", "header"),
    [
        ("llama_cpp", ["/health", "/v1/models"], "authorization"),
        ("vllm", ["/health", "/v1/models"], "authorization"),
        ("openai", ["/v1/models"], "authorization"),
        ("deepseek", ["/v1/models"], "authorization"),
        ("anthropic", ["/v1/models"], "x-api-key"),
    ],
)
def test_health_and_models_are_asked_with_the_key(kind: str, paths: list[str], header: str) -> None:
    answers = {path: httpx.Response(200, json=_MODELS) for path in ("/health", "/v1/models")}

    seen = _look(kind, answers)

    assert (seen.offered_models, seen.complaint) == (("a", "b"), {})
    assert [request.url.path for request in _asked] == paths
    assert "sk-1" in _asked[-1].headers[header]


def test_gemini_names_its_models_otherwise() -> None:
    models = {"models": [{"name": "models/gemini-x"}]}

    seen = _look("gemini", {"/v1beta/models": httpx.Response(200, json=models)})

    assert seen.offered_models == ("gemini-x",)
    assert _asked[0].headers["x-goog-api-key"] == "sk-1"


def test_without_a_key_none_is_shown() -> None:
    _look("openai", {"/v1/models": httpx.Response(200, json=_MODELS)}, key="")

    assert "authorization" not in _asked[0].headers


@pytest.mark.parametrize(
    ("status", "code"), [(401, "key_refused"), (503, "not_ready_yet"), (500, "bad_status")]
)
def test_a_server_that_answers_otherwise_is_complained_about(status: int, code: str) -> None:
    seen = _look("openai", {"/v1/models": httpx.Response(status)})

    assert seen.complaint["code"] == code
    assert seen.failure == {}


@pytest.mark.parametrize("body", [[], {"data": 3}, {}])
def test_what_is_no_list_of_models_is_no_answer(body: object) -> None:
    with pytest.raises(AskError, match="bad_answer"):
        _look("openai", {"/v1/models": httpx.Response(200, json=body)})


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("", ""),
        ("unloaded", "unloaded"),
        (
            "Internal: ValueError: weights file corrupt\n\nAt:\n  /srv/m/1/model.py(5): init\n",
            "Internal: ValueError: weights file corrupt",
        ),
        ("cannot open /srv/models/m/1/w.bin: no such file", "cannot open w.bin: no such file"),
        ("see https://example.com/a/b/c", "see https://example.com/a/b/c"),
        (
            'Traceback (most recent call last):\n  File "/a/b.py", line 3\n    x()\nKeyError: 1',
            "KeyError: 1",
        ),
        ("x" * 700, "x" * 599 + "…"),
    ],
)
def test_reasons_are_stripped_of_what_is_nobodys_business(told: str, shown: str) -> None:
    assert stripped(told) == shown

"""Looking at engines other than Triton: are they well, and which models do they offer?"""

from dataclasses import dataclass
from typing import Any

import httpx

from apps.fleet.addresses import api_base
from apps.fleet.asking import Answer, AskError, ask
from apps.fleet.models import Server
from apps.fleet.sightings import Reason, ServerSeen

LOOK_SECONDS = 3.0
_MAX_MODELS = 500
_MAX_NAME_CHARACTERS = 200
_ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class Dialect:
    """Version of a server's API, and where it says how it is (empty: nowhere)."""

    version: str = "v1"
    health_path: str = ""


_WITH_HEALTH = Dialect(health_path="/health")
_DIALECTS: dict[str, Dialect] = {
    Server.Kind.VLLM: _WITH_HEALTH,
    Server.Kind.SGLANG: _WITH_HEALTH,
    Server.Kind.TGI: _WITH_HEALTH,
    Server.Kind.TENSORRT_LLM: _WITH_HEALTH,
    Server.Kind.LLAMA_CPP: _WITH_HEALTH,
    Server.Kind.GEMINI: Dialect(version="v1beta"),
}


async def engine_look(http: httpx.AsyncClient, server: Server, api_key: str) -> ServerSeen:
    """What the server says of itself; raises AskError when it does not answer."""
    dialect = _DIALECTS.get(server.kind, Dialect())
    headers = key_headers(server.kind, api_key)
    if dialect.health_path:
        health = await _get(http, server.url + dialect.health_path, headers)
        if not health.is_ok:
            return ServerSeen(server.pk, complaint=_complaint(health))
    answer = await _get(http, api_base(server.url, dialect.version) + "/models", headers)
    if not answer.is_ok:
        return ServerSeen(server.pk, complaint=_complaint(answer))
    return ServerSeen(server.pk, offered_models=models_parsed(answer.json()))


def key_headers(kind: str, api_key: str) -> dict[str, str]:
    """How the kind of server wants to be shown the key; nothing without one."""
    if not api_key:
        return {}
    match kind:
        case Server.Kind.ANTHROPIC:
            return {"x-api-key": api_key, "anthropic-version": _ANTHROPIC_VERSION}
        case Server.Kind.GEMINI:
            return {"x-goog-api-key": api_key}
    return {"authorization": f"Bearer {api_key}"}


def models_parsed(found: object) -> tuple[str, ...]:
    """Names in a list of models, sorted, 500 at most; raises AskError for what is no list."""
    if not isinstance(found, dict):
        raise AskError("bad_answer")
    items = found.get("data", found.get("models"))
    if not isinstance(items, list):
        raise AskError("bad_answer")
    names = {name for item in items if (name := _name(item))}
    return tuple(sorted(names)[:_MAX_MODELS])


def _name(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    name = item.get("id") or item.get("name")
    return name.removeprefix("models/")[:_MAX_NAME_CHARACTERS] if isinstance(name, str) else ""


async def _get(http: httpx.AsyncClient, url: str, headers: dict[str, str]) -> Answer:
    return await ask(http, "GET", url, seconds=LOOK_SECONDS, headers=headers)


def _complaint(answer: Answer) -> Reason:
    """What is wrong with a server that answers, but not with 200."""
    if answer.status in {401, 403}:
        return {"code": "key_refused", "status": answer.status}
    if answer.status == httpx.codes.SERVICE_UNAVAILABLE:
        return {"code": "not_ready_yet"}
    return {"code": "bad_status", "status": answer.status}

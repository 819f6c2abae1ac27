"""Chat completions in OpenAI's words, for adapters whose servers use others."""

import time
from typing import Any
from uuid import uuid4

import orjson

from apps.core.errors import InvalidRequestError, UpstreamProtocolError
from apps.gateway.adapters.contract import Chunk
from apps.gateway.orders import Order
from apps.gateway.usage import Usage


class CompletionWriter:
    """Writes one answer, whole or in chunks that share an id."""

    def __init__(self, order: Order) -> None:
        self._id = "chatcmpl-" + uuid4().hex
        self._created = int(time.time())
        self._model = order.model

    def chunk(
        self, delta: dict[str, Any], *, index: int = 0, finish_reason: str | None = None
    ) -> Chunk:
        """A change of one choice; it has content when it says more than a role."""
        choice = {"index": index, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        has_content = finish_reason is not None or any(
            value for name, value in delta.items() if name != "role"
        )
        return Chunk(orjson.dumps({**self._frame(is_chunk=True), "choices": [choice]}), has_content)

    def usage_chunk(self, usage: Usage) -> Chunk:
        """The last chunk, for a client that asked for usage."""
        raw = {**self._frame(is_chunk=True), "choices": [], "usage": usage.to_openai()}
        return Chunk(orjson.dumps(raw), has_content=False)

    def whole(self, choices: list[dict[str, Any]], usage: Usage) -> bytes:
        """The answer as one object; `choices` are messages with a `finish_reason` each."""
        numbered = [
            {"index": index, "logprobs": None, **choice} for index, choice in enumerate(choices)
        ]
        raw = {**self._frame(is_chunk=False), "choices": numbered, "usage": usage.to_openai()}
        return orjson.dumps(raw)

    def _frame(self, *, is_chunk: bool) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk" if is_chunk else "chat.completion",
            "created": self._created,
            "model": self._model,
        }


def tool_call(identity: str, name: str, arguments: str) -> dict[str, Any]:
    """A whole call of a tool; `arguments` is JSON."""
    return {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def answer_object(data: bytes) -> dict[str, Any]:
    """A JSON object of a server. Raises UpstreamProtocolError."""
    try:
        raw = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise UpstreamProtocolError("the model server answered something that is no JSON") from exc
    if not isinstance(raw, dict):
        raise UpstreamProtocolError("the model server answered JSON that is no object")
    return raw


def objects_of(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of objects of a server; empty where it is left out. Raises UpstreamProtocolError."""
    found = holder.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise UpstreamProtocolError(f"the model server answered {name} that are no objects")
    return found


def object_of(holder: dict[str, Any], name: str) -> dict[str, Any]:
    """An object of a server; empty where it is left out. Raises UpstreamProtocolError."""
    found = holder.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise UpstreamProtocolError(f"the model server answered a {name} that is no object")
    return found


def text_of(holder: dict[str, Any], name: str) -> str:
    """A text of a server; "" where it is left out. Raises UpstreamProtocolError."""
    found = holder.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise UpstreamProtocolError(f"the model server answered a {name} that is no text")
    return found


def not_supported(field: str, problem: str) -> InvalidRequestError:
    """The refusal of a parameter that a server has no words for."""
    return InvalidRequestError(
        f"{field} {problem}", code="parameter_not_supported", fields={field: [problem]}
    )

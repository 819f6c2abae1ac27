"""Gemini's own API: `generateContent`, streamed as events, and embeddings.

The key goes into a header, never into the URL. https://ai.google.dev/api/generate-content
"""

import struct
from base64 import b64encode
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson

from apps.core.errors import InferAdminError, UpstreamProtocolError
from apps.fleet.addresses import api_base
from apps.gateway.adapters.completions import (
    CompletionWriter,
    answer_object,
    object_of,
    objects_of,
    text_of,
    tool_call,
)
from apps.gateway.adapters.contract import Answer, Chunk, StreamReader, UpstreamRequest
from apps.gateway.adapters.failures import failure_in_stream, failure_of_status
from apps.gateway.adapters.gemini_requests import embed_body, generate_body
from apps.gateway.orders import Endpoint, Format, Order
from apps.gateway.snapshot import TargetRow
from apps.gateway.sse import Event
from apps.gateway.tokens import tokens_about
from apps.gateway.usage import Usage, usage_from_gemini

_FILTERED = {
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
}  # fmt: skip


class GeminiAdapter:
    """Chats, whole and streamed."""

    endpoints: frozenset[Endpoint] = frozenset({"chat.completions"})

    def request_for(self, order: Order, target: TargetRow) -> UpstreamRequest:
        verb = "streamGenerateContent?alt=sse" if order.is_stream else "generateContent"
        return _request(target, verb, generate_body(order))

    def answer_of(self, order: Order, target: TargetRow, body: bytes) -> Answer:
        del target
        raw = _object(body)
        choices = [_choice(candidate) for candidate in objects_of(raw, "candidates")]
        if not choices:
            choices = [_blocked(raw)]
        usage = usage_from_gemini(raw.get("usageMetadata"))
        if usage is None:
            guess = sum(len(orjson.dumps(choice["message"])) for choice in choices)
            usage = Usage(order.input_tokens_held, tokens_about(guess), is_estimated=True)
        return Answer(body=CompletionWriter(order).whole(choices, usage), usage=usage)

    def reader_for(self, order: Order, target: TargetRow) -> "GeminiReader":
        del target
        return GeminiReader(order)

    def failure_of(
        self, target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None
    ) -> InferAdminError:
        return failure_of_status(target, status, body, retry_after_seconds)


class GeminiEmbeddingsAdapter:
    """Texts in, vectors out."""

    endpoints: frozenset[Endpoint] = frozenset({"embeddings"})

    def request_for(self, order: Order, target: TargetRow) -> UpstreamRequest:
        model = target.upstream_model.removeprefix("models/")
        return _request(target, "batchEmbedContents", embed_body(order, model))

    def answer_of(self, order: Order, target: TargetRow, body: bytes) -> Answer:
        del target
        raw = _object(body)
        vectors = [item.get("values") for item in objects_of(raw, "embeddings")]
        given = order.body["input"]
        if len(vectors) != (1 if isinstance(given, str) else len(given)):
            raise UpstreamProtocolError("the model server answered no vector for each text")
        usage = usage_from_gemini(raw.get("usageMetadata")) or Usage(
            order.input_tokens_held, 0, is_estimated=True
        )
        is_base64 = order.body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": index, "embedding": _vector(vector, is_base64)}
            for index, vector in enumerate(vectors)
        ]
        told = {"prompt_tokens": usage.input_tokens, "total_tokens": usage.total_tokens}
        whole = {"object": "list", "data": data, "model": order.model, "usage": told}
        return Answer(body=orjson.dumps(whole), usage=usage)

    def reader_for(self, order: Order, target: TargetRow) -> StreamReader:
        raise NotImplementedError("embeddings are never streamed")

    def failure_of(
        self, target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None
    ) -> InferAdminError:
        return failure_of_status(target, status, body, retry_after_seconds)


class GeminiReader:
    """Reads answers that each hold what is new since the one before."""

    format: Format = "openai"
    ends_by_closing = False

    def __init__(self, order: Order) -> None:
        self.is_finished = False
        self._order = order
        self._writer = CompletionWriter(order)
        self._metadata: dict[str, Any] = {}
        self._text_bytes = 0
        # Calls of tools so far, by the candidate's number.
        self._calls: dict[int, int] = {}
        self._begun: set[int] = set()

    def take(self, event: Event) -> list[Chunk]:
        raw = _object(event.data)
        self._metadata |= object_of(raw, "usageMetadata")
        chunks: list[Chunk] = []
        candidates = objects_of(raw, "candidates")
        for candidate in candidates:
            chunks += self._read(candidate)
        if not candidates and object_of(raw, "promptFeedback").get("blockReason"):
            self.is_finished = True
            chunks.append(self._writer.chunk({}, finish_reason="content_filter"))
        return chunks

    def end(self) -> list[Chunk]:
        return [self._writer.usage_chunk(self.usage())] if self._order.wants_usage else []

    def usage(self) -> Usage:
        guess = tokens_about(self._text_bytes)
        found = usage_from_gemini(self._metadata)
        return found or Usage(self._order.input_tokens_held, guess, is_estimated=True)

    def _read(self, candidate: dict[str, Any]) -> list[Chunk]:
        number = candidate.get("index")
        index = number if isinstance(number, int) else 0
        deltas = [self._delta(part, index) for part in _parts(candidate)]
        if index not in self._begun:
            self._begun.add(index)
            deltas.insert(0, {"role": "assistant", "content": ""})
        chunks = [self._writer.chunk(delta, index=index) for delta in deltas if delta]
        if candidate.get("finishReason"):
            self.is_finished = True
            reason = _finish_reason(candidate, called_tools=index in self._calls)
            chunks.append(self._writer.chunk({}, index=index, finish_reason=reason))
        return chunks

    def _delta(self, part: dict[str, Any], index: int) -> dict[str, Any]:
        self._text_bytes += len(orjson.dumps(part))
        if "functionCall" in part:
            position = self._calls.get(index, 0)
            self._calls[index] = position + 1
            return {"tool_calls": [{"index": position, **_called(part)}]}
        name = "reasoning_content" if part.get("thought") else "content"
        text = text_of(part, "text")
        return {name: text} if text else {}


def _request(target: TargetRow, verb: str, body: dict[str, Any]) -> UpstreamRequest:
    headers = {"content-type": "application/json"}
    if target.server.secret:
        headers["x-goog-api-key"] = target.server.secret
    model = quote(target.upstream_model.removeprefix("models/"), safe="")
    url = f"{api_base(target.server.url, 'v1beta')}/models/{model}:{verb}"
    return UpstreamRequest(url=url, body=orjson.dumps(body), headers=headers)


def _object(data: bytes) -> dict[str, Any]:
    raw = answer_object(data)
    if raw.get("error"):
        raise failure_in_stream(raw["error"])
    return raw


def _parts(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    return objects_of(object_of(candidate, "content"), "parts")


def _choice(candidate: dict[str, Any]) -> dict[str, Any]:
    parts = _parts(candidate)
    calls = [_called(part) for part in parts if "functionCall" in part]
    thoughts = [text_of(part, "text") for part in parts if part.get("thought")]
    texts = [text_of(part, "text") for part in parts if not part.get("thought")]
    content = "".join(texts)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if any(thoughts):
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message |= {"content": content or None, "tool_calls": calls}
    reason = _finish_reason(candidate, called_tools=bool(calls))
    return {"message": message, "finish_reason": reason}


def _blocked(raw: dict[str, Any]) -> dict[str, Any]:
    """The choice of an answer that was held back. Raises UpstreamProtocolError for no answer."""
    if not object_of(raw, "promptFeedback").get("blockReason"):
        raise UpstreamProtocolError("the model server answered no candidate")
    message = {"role": "assistant", "content": ""}
    return {"message": message, "finish_reason": "content_filter"}


def _called(part: dict[str, Any]) -> dict[str, Any]:
    call = object_of(part, "functionCall")
    arguments = orjson.dumps(object_of(call, "args")).decode()
    identity = text_of(call, "id") or f"call_{uuid4().hex[:24]}"
    return tool_call(identity, text_of(call, "name"), arguments)


def _finish_reason(candidate: dict[str, Any], *, called_tools: bool) -> str:
    """Gemini says STOP after calling a tool, too."""
    reason = candidate.get("finishReason")
    if reason == "MAX_TOKENS":
        return "length"
    if isinstance(reason, str) and reason in _FILTERED:
        return "content_filter"
    return "tool_calls" if called_tools else "stop"


def _vector(vector: Any, is_base64: bool) -> Any:
    """The vector, or little-endian FP32 as OpenAI's clients ask for by default."""
    if not isinstance(vector, list) or not all(isinstance(x, (int, float)) for x in vector):
        raise UpstreamProtocolError("the model server answered a vector that is none")
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if is_base64 else vector

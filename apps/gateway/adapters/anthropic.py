"""Anthropic's Messages API: translated for clients of OpenAI's, passed on to those of its own.

https://docs.claude.com/en/api/messages and …/messages-streaming
"""

from dataclasses import replace
from typing import Any

import orjson

from apps.core.errors import InferAdminError
from apps.fleet.addresses import api_base
from apps.gateway.adapters.anthropic_requests import messages_body
from apps.gateway.adapters.completions import (
    CompletionWriter,
    answer_object,
    object_of,
    objects_of,
    text_of,
    tool_call,
)
from apps.gateway.adapters.contract import Answer, Chunk, UpstreamRequest
from apps.gateway.adapters.failures import failure_in_stream, failure_of_status
from apps.gateway.orders import Endpoint, Format, Order
from apps.gateway.snapshot import TargetRow
from apps.gateway.sse import Event
from apps.gateway.tokens import tokens_about
from apps.gateway.usage import Usage, merged_anthropic, usage_from_anthropic

_VERSION = "2023-06-01"
_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class AnthropicAdapter:
    """Messages, whole and streamed."""

    endpoints: frozenset[Endpoint] = frozenset({"chat.completions"})

    def request_for(self, order: Order, target: TargetRow) -> UpstreamRequest:
        own = _own(order)
        body = messages_body(order) if own is None else own
        headers = {"content-type": "application/json", "anthropic-version": _VERSION}
        if own is not None and order.native is not None:
            headers |= order.native.headers
        if target.server.secret:
            headers["x-api-key"] = target.server.secret
        return UpstreamRequest(
            url=api_base(target.server.url, "v1") + "/messages",
            body=orjson.dumps({**body, "model": target.upstream_model}),
            headers=headers,
        )

    def answer_of(self, order: Order, target: TargetRow, body: bytes) -> Answer:
        del target
        raw = _object(body)
        blocks = objects_of(raw, "content")
        usage = usage_from_anthropic(raw.get("usage"))
        if usage is None:
            guess = sum(len(orjson.dumps(block)) for block in blocks)
            usage = Usage(order.input_tokens_held, tokens_about(guess), is_estimated=True)
        if _own(order) is not None:
            return Answer(body=body, usage=usage, format="anthropic")
        reason = _finish_reason(raw.get("stop_reason"))
        choice = {"message": _message(blocks), "finish_reason": reason}
        return Answer(body=CompletionWriter(order).whole([choice], usage), usage=usage)

    def reader_for(self, order: Order, target: TargetRow) -> "AnthropicReader":
        del target
        return AnthropicReader(order)

    def failure_of(
        self, target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None
    ) -> InferAdminError:
        return failure_of_status(target, status, body, retry_after_seconds)


class AnthropicReader:
    """Reads the events of a message; passes them on as they are where the client speaks so."""

    ends_by_closing = False

    def __init__(self, order: Order) -> None:
        self._is_own = _own(order) is not None
        self.format: Format = "anthropic" if self._is_own else "openai"
        self.is_finished = False
        self._order = order
        self._writer = CompletionWriter(order)
        self._start: dict[str, Any] = {}
        self._delta: dict[str, Any] = {}
        self._text_bytes = 0
        # Number of the tool call that a block is, by the block's index.
        self._calls: dict[Any, int] = {}

    def take(self, event: Event) -> list[Chunk]:
        raw = _object(event.data)
        kind = text_of(raw, "type")
        chunks = self._translated(kind, raw)
        if not self._is_own:
            return chunks
        has_content = any(chunk.has_content for chunk in chunks)
        return [Chunk(event.data, has_content or kind == "message_stop", kind or event.name)]

    def end(self) -> list[Chunk]:
        if self._is_own or not self._order.wants_usage:
            return []
        return [self._writer.usage_chunk(self.usage())]

    def usage(self) -> Usage:
        guess = tokens_about(self._text_bytes)
        found = merged_anthropic(self._start, self._delta)
        if found is None:
            return Usage(self._order.input_tokens_held, guess, is_estimated=True)
        if not found.is_estimated:
            return found
        return replace(
            found,
            input_tokens=found.input_tokens or self._order.input_tokens_held,
            output_tokens=max(found.output_tokens, guess),
        )

    def _translated(self, kind: str, raw: dict[str, Any]) -> list[Chunk]:
        if kind == "message_start":
            self._start = object_of(object_of(raw, "message"), "usage")
            return [self._writer.chunk({"role": "assistant", "content": ""})]
        if kind == "content_block_start":
            return self._begun(raw.get("index"), object_of(raw, "content_block"))
        if kind == "content_block_delta":
            return self._changed(raw.get("index"), object_of(raw, "delta"))
        if kind == "message_delta":
            self._delta |= object_of(raw, "usage")
            return self._ended(object_of(raw, "delta").get("stop_reason"))
        if kind == "message_stop":
            self.is_finished = True
        return []

    def _begun(self, index: Any, block: dict[str, Any]) -> list[Chunk]:
        if block.get("type") != "tool_use":
            text = text_of(block, "text")
            return [self._said({"content": text}, text)] if text else []
        number = self._calls.setdefault(index, len(self._calls))
        call = tool_call(text_of(block, "id"), text_of(block, "name"), "")
        return [self._writer.chunk({"tool_calls": [{"index": number, **call}]})]

    def _changed(self, index: Any, delta: dict[str, Any]) -> list[Chunk]:
        kind = delta.get("type")
        if kind == "text_delta":
            text = text_of(delta, "text")
            return [self._said({"content": text}, text)]
        if kind == "thinking_delta":
            text = text_of(delta, "thinking")
            return [self._said({"reasoning_content": text}, text)]
        if kind == "input_json_delta" and index in self._calls:
            text = text_of(delta, "partial_json")
            call = {"index": self._calls[index], "function": {"arguments": text}}
            return [self._said({"tool_calls": [call]}, text)]
        return []

    def _said(self, delta: dict[str, Any], text: str) -> Chunk:
        self._text_bytes += len(text.encode())
        return self._writer.chunk(delta)

    def _ended(self, reason: Any) -> list[Chunk]:
        if reason is None:
            return []
        # A client of the API itself waits for `message_stop`, too.
        self.is_finished = not self._is_own
        return [self._writer.chunk({}, finish_reason=_finish_reason(reason))]


def _own(order: Order) -> dict[str, Any] | None:
    """The client's own body, where it speaks as the server does."""
    native = order.native
    return native.body if native is not None and native.format == "anthropic" else None


def _object(data: bytes) -> dict[str, Any]:
    raw = answer_object(data)
    if raw.get("error"):
        raise failure_in_stream(raw["error"])
    return raw


def _message(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    texts = [text_of(block, "text") for block in blocks if block.get("type") == "text"]
    thoughts = [text_of(block, "thinking") for block in blocks if block.get("type") == "thinking"]
    calls = [
        tool_call(
            text_of(block, "id"),
            text_of(block, "name"),
            orjson.dumps(object_of(block, "input")).decode(),
        )
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None}
    if not calls and not texts:
        message["content"] = ""
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    return {**message, "tool_calls": calls} if calls else message


def _finish_reason(reason: Any) -> str:
    return _FINISH_REASONS.get(reason, "stop") if isinstance(reason, str) else "stop"

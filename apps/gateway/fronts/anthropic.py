"""Anthropic's Messages API in front of every target: `POST /v1/messages`.

https://docs.claude.com/en/api/messages and …/messages-streaming
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import orjson

from apps.core.errors import InferAdminError, InvalidRequestError
from apps.gateway.adapters.contract import Answer, Chunk
from apps.gateway.errors import http_status
from apps.gateway.fronts.anthropic_requests import openai_body
from apps.gateway.fronts.contract import Presenter
from apps.gateway.orders import Format, Native, Order, order_of
from apps.gateway.sse import event_of
from apps.gateway.usage import Usage, usage_from_openai

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_HEADERS = ("anthropic-version", "anthropic-beta")
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


class AnthropicFront:
    """Messages; `is_counting` for the endpoint that only counts their tokens."""

    def __init__(self, *, is_counting: bool = False) -> None:
        self._is_counting = is_counting

    def order_of(self, body: Any, headers: Mapping[str, str]) -> Order:
        if not isinstance(body, dict):
            raise InvalidRequestError("the body must be a JSON object", code="invalid_body")
        if body.get("max_tokens") is None and not self._is_counting:
            text = "must be a whole number: the most tokens to generate"
            raise InvalidRequestError.of("max_tokens", text)
        order = order_of("chat.completions", openai_body(body))
        return replace(
            order, native=Native("anthropic", body, _own_headers(headers)), called="messages"
        )

    def whole(self, order: Order, answer: Answer) -> bytes:
        if answer.format == "anthropic":
            return answer.body
        raw = orjson.loads(answer.body)
        choice = (raw.get("choices") or [{}])[0]
        message = choice.get("message") or {}
        content: list[dict[str, Any]] = []
        if text := message.get("content"):
            content.append({"type": "text", "text": text})
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            content.append(
                _tool_use(call.get("id"), function.get("name"), function.get("arguments"))
            )
        return orjson.dumps(
            {
                **_opening(order),
                "content": content,
                "stop_reason": _stop_reason(
                    choice.get("finish_reason"), called_tools=bool(message.get("tool_calls"))
                ),
                "usage": answer.usage.to_anthropic(),
            }
        )

    def presenter(self, order: Order, chunk_format: Format) -> Presenter:
        if chunk_format == "anthropic":
            return OwnPresenter()
        return AnthropicPresenter(order)

    def error(self, error: InferAdminError) -> Mapping[str, Any]:
        return error_body(error)


class OwnPresenter:
    """Passes on the events of a server that speaks the same, their end among them."""

    def take(self, chunks: Sequence[Chunk]) -> bytes:
        return b"".join(
            b"event: " + chunk.event.encode() + b"\n" + event_of(chunk.data) for chunk in chunks
        )

    def end(self) -> bytes:
        return b""

    def fail(self, error: InferAdminError) -> bytes:
        return _event("error", error=error_body(error)["error"])


class AnthropicPresenter:
    """Writes the events of a message: its blocks one after the other, then why it ended.

    Arguments of the first tool are passed on as they come. Those of others are kept until the end,
    for servers may mix them, and a block must be closed before the next is opened.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._has_started = False
        self._blocks = 0
        # "text", or the index of the tool whose arguments are being passed on.
        self._open: str | int | None = None
        self._first_tool: int | None = None
        self._kept: dict[int, dict[str, str]] = {}
        self._finish_reason: str | None = None
        self._usage: Usage | None = None

    def take(self, chunks: Sequence[Chunk]) -> bytes:
        events: list[bytes] = []
        for chunk in chunks:
            raw = orjson.loads(chunk.data)
            self._usage = usage_from_openai(raw.get("usage")) or self._usage
            self._start(events)
            for choice in raw.get("choices") or []:
                self._finish_reason = choice.get("finish_reason") or self._finish_reason
                delta = choice.get("delta") or {}
                if text := delta.get("content"):
                    self._text(text, events)
                for call in delta.get("tool_calls") or []:
                    self._call(call, events)
        return b"".join(events)

    def end(self) -> bytes:
        events: list[bytes] = []
        self._start(events)
        self._close(events)
        for call in self._kept.values():
            self._begin("kept", _tool_use(call["id"], call["name"], ""), events)
            self._delta({"type": "input_json_delta", "partial_json": call["arguments"]}, events)
            self._close(events)
        reason = _stop_reason(self._finish_reason, called_tools=self._first_tool is not None)
        stop = {"stop_reason": reason, "stop_sequence": None}
        usage = (self._usage or Usage(self._order.input_tokens_held, 0)).to_anthropic()
        events.append(_event("message_delta", delta=stop, usage=usage))
        events.append(_event("message_stop"))
        return b"".join(events)

    def fail(self, error: InferAdminError) -> bytes:
        return _event("error", error=error_body(error)["error"])

    def _start(self, events: list[bytes]) -> None:
        if self._has_started:
            return
        self._has_started = True
        # The prompt is counted at the end: `message_delta` tells running totals.
        message = {
            **_opening(self._order),
            "content": [],
            "stop_reason": None,
            "usage": Usage(0, 0).to_anthropic(),
        }
        events.append(_event("message_start", message=message))

    def _text(self, text: str, events: list[bytes]) -> None:
        if self._open != "text":
            self._begin("text", {"type": "text", "text": ""}, events)
        self._delta({"type": "text_delta", "text": text}, events)

    def _call(self, call: dict[str, Any], events: list[bytes]) -> None:
        index = call.get("index") or 0
        function = call.get("function") or {}
        arguments = function.get("arguments") or ""
        if self._first_tool is None:
            self._first_tool = index
            self._begin(index, _tool_use(call.get("id"), function.get("name"), ""), events)
        if self._open == index:
            if arguments:
                self._delta({"type": "input_json_delta", "partial_json": arguments}, events)
            return
        kept = self._kept.setdefault(index, {"id": "", "name": "", "arguments": ""})
        kept["id"] = kept["id"] or call.get("id") or _tool_id()
        kept["name"] = kept["name"] or function.get("name") or ""
        kept["arguments"] += arguments

    def _begin(self, what: str | int, block: dict[str, Any], events: list[bytes]) -> None:
        self._close(events)
        events.append(_event("content_block_start", index=self._blocks, content_block=block))
        self._open = what

    def _delta(self, delta: dict[str, Any], events: list[bytes]) -> None:
        events.append(_event("content_block_delta", index=self._blocks, delta=delta))

    def _close(self, events: list[bytes]) -> None:
        if self._open is None:
            return
        events.append(_event("content_block_stop", index=self._blocks))
        self._blocks += 1
        self._open = None


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that belong to the format."""
    return {name: value for name in _HEADERS if (value := headers.get(name))}


def error_body(error: InferAdminError) -> dict[str, Any]:
    """An error as Anthropic's API tells it."""
    kind = _ERRORS.get(http_status(error), "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}}


def _opening(order: Order) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": order.model,
        "stop_sequence": None,
    }


def _stop_reason(finish_reason: Any, *, called_tools: bool) -> str:
    """Servers that say `stop` after calling a tool mean the tool."""
    reason = _STOP_REASONS.get(finish_reason, "end_turn")
    return "tool_use" if called_tools and reason == "end_turn" else reason


def _tool_use(identity: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": identity or _tool_id(),
        "name": name or "",
        "input": _parsed(arguments),
    }


def _parsed(arguments: Any) -> dict[str, Any]:
    """What a tool is called with; arguments that were cut are passed on as the text they are."""
    if not arguments:
        return {}
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        found = arguments
    return found if isinstance(found, dict) else {"arguments": found}


def _tool_id() -> str:
    return f"toolu_{uuid4().hex[:24]}"


def _event(name: str, **fields: Any) -> bytes:
    data = orjson.dumps({"type": name, **fields})
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"

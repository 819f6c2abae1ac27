"""Anthropic's and Gemini's APIs on one port, with scripted answers.

    api.answers = "tools"

It answers by path and by whether a stream is asked for; `api.seen` tells what has arrived.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from tests.support.serving import serving

# Of the prompt 40 tokens were read from a cache and, at Anthropic, 30 written to it.
ANTHROPIC_USAGE = {
    "input_tokens": 30,
    "cache_read_input_tokens": 40,
    "cache_creation_input_tokens": 30,
    "output_tokens": 9,
}
GEMINI_USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 40,
    "candidatesTokenCount": 6,
    "thoughtsTokenCount": 3,
    "totalTokenCount": 109,
}
_ARGUMENTS: list[dict[str, Any]] = [{"city": "Bonn"}, {"city": "Köln"}]
_OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@dataclass
class Seen:
    """A request that arrived."""

    path: str
    query: str
    headers: dict[str, str]
    body: dict[str, Any]


class FakePaidApi:
    """The ASGI application. `answers`: "text", "tools", or "overloaded" inside a 200."""

    def __init__(self) -> None:
        self.url = ""
        self.answers = "text"
        self.seen: list[Seen] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen = Seen(
            scope["path"], scope["query_string"].decode(), headers, orjson.loads(body or b"{}")
        )
        self.seen.append(seen)
        kind, data = self._answer(seen)
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]}
        await send(start)
        await send({"type": "http.response.body", "body": data})

    @contextlib.contextmanager
    def served(self) -> Iterator["FakePaidApi"]:
        """Listen on loopback while the block runs."""
        with serving(self, lifespan="off") as url:
            self.url = url
            yield self

    def _answer(self, seen: Seen) -> tuple[bytes, bytes]:
        is_anthropic = seen.path.endswith("/messages")
        is_stream = bool(seen.body.get("stream")) or seen.query == "alt=sse"
        has_tools = self.answers == "tools"
        if self.answers == "overloaded":
            found: Any = [_OVERLOADED] if is_stream else _OVERLOADED
        elif is_anthropic:
            found = _anthropic_events(has_tools) if is_stream else _anthropic_whole(has_tools)
        else:
            found = _gemini_events(has_tools) if is_stream else _gemini_whole(has_tools)
        if not is_stream:
            return b"application/json", orjson.dumps(found)
        return b"text/event-stream", b"".join(
            (b"event: " + item["type"].encode() + b"\n" if is_anthropic else b"")
            + b"data: "
            + orjson.dumps(item)
            + b"\r\n\r\n"
            for item in found
        )


def _anthropic_message(**fields: Any) -> dict[str, Any]:
    return {
        "id": "msg_upstream",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        **fields,
    }


def _anthropic_blocks(has_tools: bool) -> list[dict[str, Any]]:
    if not has_tools:
        return [{"type": "text", "text": "Hello world"}]
    return [
        {"type": "tool_use", "id": f"toolu_{index}", "name": "weather", "input": arguments}
        for index, arguments in enumerate(_ARGUMENTS)
    ]


def _anthropic_whole(has_tools: bool) -> dict[str, Any]:
    return _anthropic_message(
        content=_anthropic_blocks(has_tools),
        stop_reason="tool_use" if has_tools else "end_turn",
        usage=ANTHROPIC_USAGE,
    )


def _anthropic_events(has_tools: bool) -> list[dict[str, Any]]:
    opening = {**ANTHROPIC_USAGE, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _anthropic_message(usage=opening)}
    ]
    for index, block in enumerate(_anthropic_blocks(has_tools)):
        empty = {**block, "input": {}} if has_tools else {**block, "text": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        whole = orjson.dumps(block["input"]).decode() if has_tools else block["text"]
        for piece in (whole[:5], whole[5:]):
            delta = (
                {"type": "input_json_delta", "partial_json": piece}
                if has_tools
                else {"type": "text_delta", "text": piece}
            )
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": "tool_use" if has_tools else "end_turn", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
    return [*events, {"type": "message_stop"}]


def _gemini_parts(has_tools: bool) -> list[dict[str, Any]]:
    if not has_tools:
        return [{"text": "Hello"}, {"text": " world"}]
    return [{"functionCall": {"name": "weather", "args": args}} for args in _ARGUMENTS]


def _gemini_candidate(parts: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": parts}
    return {"candidates": [{"content": content, **fields}], "usageMetadata": GEMINI_USAGE}


def _gemini_whole(has_tools: bool) -> dict[str, Any]:
    return _gemini_candidate(_gemini_parts(has_tools), finishReason="STOP")


def _gemini_events(has_tools: bool) -> list[dict[str, Any]]:
    first, second = _gemini_parts(has_tools)
    return [_gemini_candidate([first]), _gemini_candidate([second], finishReason="STOP")]

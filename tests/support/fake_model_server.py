"""A model server that speaks OpenAI's protocol and misbehaves as its script says.

    server.script = Script(tokens=("Hel", "lo"), cut_after=1)

The script can be changed between requests; `server.seen` tells what has arrived.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from tests.support.serving import serving

PROMPT_TOKENS = 7
UsageMode = Literal["end", "every", "none"]


@dataclass(frozen=True)
class Script:
    """What the server does. Counts are of content chunks; seconds are waited before."""

    tokens: tuple[str, ...] = ("Hello", " world")
    status: int = 200
    error: str = "scripted failure"
    retry_after: str | None = None
    # Before the status line, before the first chunk, between two chunks.
    headers_delay: float = 0.0
    first_delay: float = 0.0
    gap: float = 0.0
    usage: UsageMode = "end"
    sends_done: bool = True
    sends_finish_reason: bool = True
    line_end: bytes = b"\n"
    prefix: bytes = b"data: "
    comments: bool = False
    # After so many content chunks: drop the connection, send nonsense, or an error inside the 200.
    cut_after: int | None = None
    garbage_after: int | None = None
    error_after: int | None = None
    # Bytes to send instead of a whole (not streamed) answer.
    raw_body: bytes | None = None
    # Split what is sent into pieces of so many bytes.
    piece_bytes: int | None = None


@dataclass
class Seen:
    """A request that arrived; `left` is set when its client has gone before the end."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    left: threading.Event = field(default_factory=threading.Event)


class CutError(Exception):
    """Makes uvicorn drop the connection in the middle of an answer."""


class FakeModelServer:
    """The ASGI application. `running` counts requests that are being served, `peak` the most."""

    def __init__(self) -> None:
        self.url = ""
        self.reset()

    def reset(self) -> None:
        """Forget what was seen, and behave again."""
        self.script = Script()
        self.seen: list[Seen] = []
        self.running = self.peak = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = await _body(receive)
        seen = Seen(
            path=scope["path"],
            headers={name.decode(): value.decode() for name, value in scope["headers"]},
            body=orjson.loads(body or b"{}"),
        )
        self.seen.append(seen)
        self.running += 1
        self.peak = max(self.peak, self.running)
        watch = asyncio.create_task(_watch(receive, seen, asyncio.current_task()))
        try:
            await _Answering(self.script, seen, send).run()
        except asyncio.CancelledError:
            if not seen.left.is_set():
                raise
        finally:
            self.running -= 1
            watch.cancel()

    @contextlib.contextmanager
    def served(self) -> Iterator["FakeModelServer"]:
        """Listen on loopback while the block runs."""
        with serving(self, lifespan="off") as url:
            self.url = url
            yield self

    def wait_for_requests(self, count: int, seconds: float = 5.0) -> None:
        """Wait until so many requests have arrived."""
        wait_until(lambda: len(self.seen) >= count, seconds)


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Return as soon as the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


class _Answering:
    """One request being answered."""

    def __init__(self, script: Script, seen: Seen, send: Any) -> None:
        self.script = script
        self.seen = seen
        self.send_message = send
        self.is_chat = seen.path.endswith("/chat/completions")

    async def run(self) -> None:
        await asyncio.sleep(self.script.headers_delay)
        if self.script.status != 200:
            await self.fail()
        elif self.seen.body.get("stream"):
            await self.stream()
        else:
            await self.answer()

    async def start(self, status: int, content_type: bytes) -> None:
        headers = [(b"content-type", content_type)]
        if self.script.retry_after is not None:
            headers.append((b"retry-after", self.script.retry_after.encode()))
        await self.send_message(
            {"type": "http.response.start", "status": status, "headers": headers}
        )

    async def body(self, data: bytes, *, more: bool = True) -> None:
        size = self.script.piece_bytes or len(data) or 1
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            await self.send_message(
                {"type": "http.response.body", "body": piece, "more_body": True}
            )
            if self.script.piece_bytes:
                await asyncio.sleep(0)
        if not more:
            await self.send_message({"type": "http.response.body", "body": b""})

    async def fail(self) -> None:
        await self.start(self.script.status, b"application/json")
        error = {"message": self.script.error, "type": "scripted", "param": "messages"}
        await self.body(orjson.dumps({"error": error}), more=False)

    async def answer(self) -> None:
        await asyncio.sleep(self.script.first_delay)
        await self.start(200, b"application/json")
        if self.script.raw_body is not None:
            await self.body(self.script.raw_body, more=False)
            return
        await self.body(orjson.dumps(self.whole()), more=False)

    def whole(self) -> dict[str, Any]:
        text = "".join(self.script.tokens)
        if self.seen.path.endswith("/embeddings"):
            usage: dict[str, Any] = {"prompt_tokens": PROMPT_TOKENS, "total_tokens": PROMPT_TOKENS}
            item = {"object": "embedding", "index": 0, "embedding": [0.5, -0.5]}
            raw: dict[str, Any] = {"object": "list", "model": "fake", "data": [item]}
        else:
            usage = self.usage(len(self.script.tokens))
            content: dict[str, Any] = (
                {"message": {"role": "assistant", "content": text}}
                if self.is_chat
                else {"text": text}
            )
            choice = {"index": 0, "finish_reason": "stop", **content}
            raw = {
                "id": "fake-1",
                "object": "chat.completion",
                "model": "fake",
                "choices": [choice],
            }
        return raw if self.script.usage == "none" else {**raw, "usage": usage}

    def usage(self, completion: int) -> dict[str, Any]:
        return {
            "prompt_tokens": PROMPT_TOKENS,
            "completion_tokens": completion,
            "total_tokens": PROMPT_TOKENS + completion,
        }

    async def stream(self) -> None:
        script = self.script
        await self.start(200, b"text/event-stream")
        if self.is_chat:
            await self.event(self.chunk({"role": "assistant", "content": ""}, 0))
        for index, token in enumerate(script.tokens):
            await self.misbehave(index)
            await asyncio.sleep(script.first_delay if index == 0 else script.gap)
            if script.comments:
                await self.body(b": ping" + 2 * script.line_end)
            await self.event(self.chunk({"content": token}, index + 1))
        await self.misbehave(len(script.tokens))
        if script.sends_finish_reason:
            await self.event(self.chunk({}, len(script.tokens), finish_reason="stop"))
        if script.usage != "none" and self.wants_usage():
            usage = self.usage(len(script.tokens))
            await self.event({**self.frame(), "choices": [], "usage": usage})
        if script.sends_done:
            await self.body(script.prefix + b"[DONE]" + 2 * script.line_end)
        await self.body(b"", more=False)

    async def misbehave(self, index: int) -> None:
        script = self.script
        if index in (script.cut_after, script.garbage_after, script.error_after):
            await asyncio.sleep(0.02)  # what was sent goes out by itself
        if index == script.cut_after:
            raise CutError
        if index == script.garbage_after:
            await self.body(script.prefix + b'{"choices": [' + 2 * script.line_end)
        if index == script.error_after:
            await self.event({"error": {"message": script.error, "type": "overloaded_error"}})

    def wants_usage(self) -> bool:
        options = self.seen.body.get("stream_options") or {}
        return bool(options.get("include_usage"))

    def frame(self) -> dict[str, Any]:
        return {"id": "fake-1", "object": "chat.completion.chunk", "created": 1, "model": "fake"}

    def chunk(
        self, delta: dict[str, Any], completion: int, finish_reason: str | None = None
    ) -> dict[str, Any]:
        content = {"delta": delta} if self.is_chat else {"text": delta.get("content", "")}
        choice = {"index": 0, "finish_reason": finish_reason, **content}
        usage = {"usage": self.usage(completion)} if self.script.usage == "every" else {}
        return {**self.frame(), "choices": [choice], **usage}

    async def event(self, raw: dict[str, Any]) -> None:
        await self.body(self.script.prefix + orjson.dumps(raw) + 2 * self.script.line_end)


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _watch(receive: Any, seen: Seen, serving_task: "asyncio.Task[Any] | None") -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    seen.left.set()
    if serving_task is not None:
        serving_task.cancel()

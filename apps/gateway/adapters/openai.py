"""Servers that speak OpenAI's protocol: vLLM, llama.cpp, SGLang, TGI, resellers, OpenAI itself."""

from dataclasses import replace
from typing import Any

import orjson

from apps.core.errors import InferAdminError, UpstreamProtocolError
from apps.fleet.addresses import api_base
from apps.fleet.models import Server
from apps.gateway.adapters.contract import Answer, Chunk, UpstreamRequest
from apps.gateway.adapters.failures import failure_in_stream, failure_of_status
from apps.gateway.orders import Endpoint, Format, Order
from apps.gateway.snapshot import TargetRow
from apps.gateway.sse import DONE, Event
from apps.gateway.tokens import tokens_about
from apps.gateway.usage import Usage, usage_from_openai

_PATHS: dict[Endpoint, str] = {
    "chat.completions": "/chat/completions",
    "completions": "/completions",
    "embeddings": "/embeddings",
}


class OpenAiAdapter:
    """Passes requests and answers on as they are, and reads usage as they go by."""

    endpoints: frozenset[Endpoint] = frozenset(_PATHS)

    def request_for(self, order: Order, target: TargetRow) -> UpstreamRequest:
        body = {**order.body, "model": target.upstream_model}
        if order.imposes_maximum and order.endpoint != "embeddings":
            body[_maximum_name(order, target)] = order.max_output_tokens
        if order.is_stream:
            options = order.body.get("stream_options") or {}
            body["stream_options"] = {**options, "include_usage": True}
        headers = {"content-type": "application/json"}
        if target.server.secret:
            headers["authorization"] = f"Bearer {target.server.secret}"
        return UpstreamRequest(
            url=api_base(target.server.url, "v1") + _PATHS[order.endpoint],
            body=orjson.dumps(body),
            headers=headers,
        )

    def answer_of(self, order: Order, target: TargetRow, body: bytes) -> Answer:
        raw = _object(body)
        usage = usage_from_openai(raw.get("usage"))
        if usage is None:
            usage = Usage(order.input_tokens_held, sum(_guesses(raw)), is_estimated=True)
            body = orjson.dumps({**raw, "usage": usage.to_openai()})
        elif _counts_one_choice(target) and (rest := _left_out(raw, usage)):
            usage = replace(usage, output_tokens=usage.output_tokens + rest, is_estimated=True)
            body = orjson.dumps({**raw, "usage": {**raw["usage"], **usage.to_openai()}})
        return Answer(body=body, usage=usage)

    def reader_for(self, order: Order, target: TargetRow) -> "OpenAiReader":
        return OpenAiReader(order, may_leave_out=order.choices > 1 and _counts_one_choice(target))

    def failure_of(
        self, target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None
    ) -> InferAdminError:
        return failure_of_status(target, status, body, retry_after_seconds)


class OpenAiReader:
    """Reads `chat.completion.chunk` and `text_completion` streams."""

    format: Format = "openai"
    ends_by_closing = False

    def __init__(self, order: Order, *, may_leave_out: bool) -> None:
        """`may_leave_out`: the server's count may be that of one choice among several."""
        self.is_finished = False
        self._order = order
        self._may_leave_out = may_leave_out
        self._counted: Usage | None = None
        self._texts = 0
        self._text_bytes = 0
        self._last: dict[str, Any] = {}
        self._has_sent_usage = False

    def take(self, event: Event) -> list[Chunk]:
        if event.data == DONE:
            self.is_finished = True
            return []
        raw = _object(event.data)
        choices = raw.get("choices") or []
        has_content = self._read(choices)
        self._last = raw
        if "usage" not in raw:  # nearly all chunks
            return [Chunk(event.data, has_content)]
        usage = usage_from_openai(raw["usage"])
        if usage is not None:  # some servers repeat it, always as a running total
            self._counted = usage
        if self._order.wants_usage:
            self._has_sent_usage = self._has_sent_usage or usage is not None
            return [Chunk(event.data, has_content)]
        if not choices:
            return []
        del raw["usage"]
        return [Chunk(orjson.dumps(raw), has_content)]

    def end(self) -> list[Chunk]:
        if not self._order.wants_usage or self._has_sent_usage:
            return []
        chunk = {**self._last, "choices": [], "usage": self.usage().to_openai()}
        return [Chunk(orjson.dumps(chunk), has_content=False)]

    def usage(self) -> Usage:
        # Most servers send a chunk a token; those that send more at once are caught by size.
        output = max(self._texts, tokens_about(self._text_bytes))
        counted = self._counted
        if counted is not None:
            if self._may_leave_out and output > counted.output_tokens:
                return replace(counted, output_tokens=output, is_estimated=True)
            return counted
        return Usage(self._order.input_tokens_held, output, is_estimated=True)

    def _read(self, choices: list[dict[str, Any]]) -> bool:
        """Count the text of a chunk; whether it has anything beyond a role."""
        has_content = False
        for choice in choices:
            if choice.get("finish_reason"):
                self.is_finished = has_content = True
            delta = choice.get("delta")
            if isinstance(delta, dict):
                text = delta.get("content") or delta.get("reasoning_content")
                has_content = has_content or bool(text) or _says_anything(delta)
            else:
                text = choice.get("text")
            if text and isinstance(text, str):
                has_content = True
                self._texts += 1
                self._text_bytes += len(text)
        return has_content


def _says_anything(delta: dict[str, Any]) -> bool:
    """True for tool calls, refusals and whatever else stands beside the role."""
    return any(value for name, value in delta.items() if name != "role")


def _maximum_name(order: Order, target: TargetRow) -> str:
    """OpenAI's own reasoning models take the newer name only, most other servers the older."""
    is_newer = order.endpoint == "chat.completions" and target.server.kind == Server.Kind.OPENAI
    return "max_completion_tokens" if is_newer else "max_tokens"


def _object(data: bytes) -> dict[str, Any]:
    """JSON object of a server; raises UpstreamError when it is an error or no object."""
    try:
        raw = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise UpstreamProtocolError("the model server answered something that is no JSON") from exc
    if not isinstance(raw, dict):
        raise UpstreamProtocolError("the model server answered JSON that is no object")
    if raw.get("error"):
        raise failure_in_stream(raw["error"])
    choices = raw.get("choices")
    if choices is not None and not _is_list_of_objects(choices):
        raise UpstreamProtocolError("the model server answered choices that are no list of objects")
    return raw


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _guesses(raw: dict[str, Any]) -> list[int]:
    """Completion tokens of each choice of a whole answer, by the size of its text."""
    texts = [
        choice.get("text") or (choice.get("message") or {}).get("content") or ""
        for choice in raw.get("choices") or []
    ]
    return [tokens_about(len(text.encode())) if isinstance(text, str) else 0 for text in texts]


def _counts_one_choice(target: TargetRow) -> bool:
    """llama.cpp joins the answers of several choices and keeps the usage of the first."""
    return bool(target.server.kind == Server.Kind.LLAMA_CPP)


def _left_out(raw: dict[str, Any], usage: Usage) -> int:
    """Completion tokens of the other choices, where the count is nearer to that of the first."""
    guesses = _guesses(raw)
    rest = sum(guesses[1:])
    return rest if usage.output_tokens <= sum(guesses) - rest / 2 else 0

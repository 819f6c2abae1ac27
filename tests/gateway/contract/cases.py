"""What each adapter is held to its contract with: a target, and how its server says hello."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from apps.gateway.adapters.contract import Adapter
from apps.gateway.adapters.dialects import adapter_for
from apps.gateway.orders import Order, order_of
from apps.gateway.snapshot import ServerRow, TargetRow
from apps.gateway.sse import DONE

SECRET = "sk-canary-4711"
# "Grüße 🦙" in two pieces, with counts of 7 and 2.
TEXT = "Grüße 🦙"


@dataclass(frozen=True)
class Case:
    """One adapter before one kind of server; `uncounted` are the same answers without usage."""

    name: str
    target: TargetRow
    key_header: str
    whole: bytes
    events: list[bytes]
    uncounted_whole: bytes
    uncounted_events: list[bytes]
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def adapter(self) -> Adapter:
        found = adapter_for(self.target, "chat.completions")
        assert found is not None
        return found

    def order(self, **fields: Any) -> Order:
        messages = [{"role": "user", "content": "Hi"}]
        return order_of(
            "chat.completions",
            {"model": "chat", "messages": messages, "max_tokens": 64, **self.fields, **fields},
        )


def target_of(kind: str, protocol: str, url: str = "http://upstream:8000") -> TargetRow:
    server = ServerRow(1, "server", kind, url, is_external=True, secret=SECRET)
    return TargetRow(1, server, "llm", None, protocol, 0, 1, True, None)


def sse(*items: Any, names: bool = False) -> list[bytes]:
    """Each item as an event; those of Anthropic are named by their type."""
    return [
        (b"event: " + item["type"].encode() + b"\n" if names else b"")
        + b"data: "
        + (item if isinstance(item, bytes) else orjson.dumps(item))
        + b"\n\n"
        for item in items
    ]


def without(name: str, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in item.items() if key != name} for item in items]


def _openai(kind: str) -> Case:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    frame = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "llm"}
    message = {"role": "assistant", "content": TEXT}
    whole = {
        **frame,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    said = [chunk({"role": "assistant", "content": "Grüße "}), chunk({"content": "🦙"})]
    said.append(chunk({}, "stop"))
    return Case(
        name=kind,
        target=target_of(kind, "openai"),
        key_header="authorization",
        whole=orjson.dumps(whole),
        events=sse(*said, {**frame, "choices": [], "usage": usage}, DONE),
        uncounted_whole=orjson.dumps(without("usage", [whole])[0]),
        uncounted_events=sse(*said, DONE),
    )


def _anthropic() -> Case:
    start = {"type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 7}}
    text = {"type": "text", "text": TEXT}
    whole = {
        **start,
        "id": "msg_1",
        "content": [text],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 7, "output_tokens": 2},
    }

    def said(piece: str) -> dict[str, Any]:
        delta = {"type": "text_delta", "text": piece}
        return {"type": "content_block_delta", "index": 0, "delta": delta}

    def stream(start: dict[str, Any], usage: dict[str, Any]) -> list[bytes]:
        stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **usage}
        return sse(
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {**text, "text": ""}},
            {"type": "ping"},
            said("Grüße "),
            said("🦙"),
            {"type": "content_block_stop", "index": 0},
            stop,
            {"type": "message_stop"},
            names=True,
        )

    return Case(
        name="anthropic",
        target=target_of("anthropic", "anthropic"),
        key_header="x-api-key",
        whole=orjson.dumps(whole),
        events=stream(start, {"usage": {"output_tokens": 2}}),
        uncounted_whole=orjson.dumps(without("usage", [whole])[0]),
        uncounted_events=stream(without("usage", [start])[0], {}),
    )


def _gemini() -> Case:
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9}

    def said(text: str, **fields: Any) -> dict[str, Any]:
        content = {"role": "model", "parts": [{"text": text}]}
        return {"candidates": [{"content": content, "index": 0, **fields}], "usageMetadata": usage}

    items = [said("Grüße "), said("🦙", finishReason="STOP")]
    whole = said(TEXT, finishReason="STOP")
    return Case(
        name="gemini",
        target=target_of("gemini", "gemini"),
        key_header="x-goog-api-key",
        whole=orjson.dumps(whole),
        events=sse(*items),
        uncounted_whole=orjson.dumps(without("usageMetadata", [whole])[0]),
        uncounted_events=sse(*without("usageMetadata", items)),
    )


def _triton() -> Case:
    counts = {"num_input_tokens": 7, "num_output_tokens": 1}
    items = [{"text_output": "Grüße ", **counts}, {"text_output": "🦙", **counts}]
    plain = [{"text_output": "Grüße "}, {"text_output": "🦙"}]
    return Case(
        name="triton_generate",
        target=target_of("triton", "triton_generate"),
        key_header="authorization",
        whole=b"".join(sse(*items)),
        events=sse(*items),
        uncounted_whole=b"".join(sse(*plain)),
        uncounted_events=sse(*plain),
    )


OPENAI_KINDS = (
    "vllm", "sglang", "tgi", "tensorrt_llm", "llama_cpp", "openai", "deepseek", "openai_compatible",
)  # fmt: skip
CASES = [*map(_openai, OPENAI_KINDS), _anthropic(), _gemini(), _triton()]

"""Language models behind Triton's generate extension: the vLLM and TensorRT-LLM backends, and ours.

The server continues a text and knows no chat, so the chat template is applied here. Whole answers
go through `generate_stream`, too: `generate` refuses a model that answers in several parts.
Names of tensors: https://github.com/triton-inference-server/vllm_backend (`src/model.py`) and
https://github.com/triton-inference-server/tensorrtllm_backend (`docs/model_config.md`).
"""

import time
from typing import Any
from uuid import uuid4

import orjson

from apps.core.errors import InferAdminError, InvalidRequestError, UpstreamProtocolError
from apps.gateway.adapters.chat_template import render_chat
from apps.gateway.adapters.contract import Answer, Chunk, UpstreamRequest
from apps.gateway.adapters.triton import (
    triton_failure,
    triton_failure_in_answer,
    triton_headers,
    triton_url,
)
from apps.gateway.orders import Endpoint, Format, Order
from apps.gateway.snapshot import TargetRow
from apps.gateway.sse import Event, EventParser
from apps.gateway.tokens import tokens_about
from apps.gateway.usage import Usage

_SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
)
# Understood by TensorRT-LLM and by Python models as tensors of their own.
_TENSORS = ("temperature", "top_p", "top_k", "seed")
_NOT_SUPPORTED = ("tools", "tool_choice", "response_format", "logprobs", "functions")
_DEFAULT_MAX_TOKENS = 1024


class TritonGenerateAdapter:
    """OpenAI chat and completions over `generate_stream`."""

    endpoints: frozenset[Endpoint] = frozenset({"chat.completions", "completions"})

    def request_for(self, order: Order, target: TargetRow) -> UpstreamRequest:
        _refuse_what_is_not_supported(order)
        sampling = {
            name: order.body[name] for name in _SAMPLING if order.body.get(name) is not None
        }
        sampling["max_tokens"] = order.max_output_tokens or _DEFAULT_MAX_TOKENS
        if isinstance(sampling.get("stop"), str):
            sampling["stop"] = [sampling["stop"]]
        body = {
            "text_input": _prompt(order),
            "stream": order.is_stream,
            "max_tokens": sampling["max_tokens"],
            "sampling_parameters": orjson.dumps(sampling).decode(),
            "exclude_input_in_output": True,
            "return_finish_reason": True,
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
            **{name: sampling[name] for name in _TENSORS if name in sampling},
        }
        return UpstreamRequest(
            url=triton_url(target, "generate_stream"),
            body=orjson.dumps(body),
            headers=triton_headers(target),
        )

    def answer_of(self, order: Order, target: TargetRow, body: bytes) -> Answer:
        reader = TritonGenerateReader(order, target)
        parser = EventParser()
        events = [*parser.feed(body), *parser.finish()]
        for event in events:
            reader.take(event)
        if not events:
            raise UpstreamProtocolError("the model server answered nothing")
        return Answer(body=orjson.dumps(reader.whole()), usage=reader.usage())

    def reader_for(self, order: Order, target: TargetRow) -> "TritonGenerateReader":
        return TritonGenerateReader(order, target)

    def failure_of(
        self, target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None
    ) -> InferAdminError:
        return triton_failure(target, status, body, retry_after_seconds)


class TritonGenerateReader:
    """Turns `text_output` events into OpenAI chunks, and adds up the counts that come with them."""

    format: Format = "openai"

    def __init__(self, order: Order, target: TargetRow) -> None:
        self.is_finished = False
        self.ends_by_closing = False
        self._order = order
        self._target = target
        self._is_chat = order.endpoint == "chat.completions"
        self._frame = _frame(order)
        self._texts: list[str] = []
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None
        self._finish_reason = ""

    def take(self, event: Event) -> list[Chunk]:
        raw = _event_object(event.data)
        error = raw.get("error")
        if isinstance(error, str):
            raise triton_failure_in_answer(self._target, error)
        self._count(raw)
        text = raw.get("text_output")
        if not isinstance(text, str):
            return []
        self.ends_by_closing = True
        is_first = not self._texts
        self._texts.append(text)
        return self._chunks(text, is_first=is_first)

    def end(self) -> list[Chunk]:
        choice = self._choice("", finish_reason=self._reason())
        chunks = [self._chunk([choice], has_content=True)]
        if self._order.wants_usage:
            usage = self.usage().to_openai()
            chunks.append(
                Chunk(orjson.dumps({**self._frame, "choices": [], "usage": usage}), False)
            )
        return chunks

    def usage(self) -> Usage:
        guess = max(len(self._texts), tokens_about(sum(map(len, self._texts))))
        is_counted = self._input_tokens is not None and self._output_tokens is not None
        return Usage(
            input_tokens=(
                self._order.input_tokens_held if self._input_tokens is None else self._input_tokens
            ),
            output_tokens=guess if self._output_tokens is None else self._output_tokens,
            is_estimated=not is_counted,
        )

    def whole(self) -> dict[str, Any]:
        """The answer as one object, once every event has been taken."""
        text = "".join(self._texts)
        choice: dict[str, Any] = {"index": 0, "finish_reason": self._reason(), "logprobs": None}
        if self._is_chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        kind = "chat.completion" if self._is_chat else "text_completion"
        usage = self.usage().to_openai()
        return {**self._frame, "object": kind, "choices": [choice], "usage": usage}

    def _count(self, raw: dict[str, Any]) -> None:
        """The prompt's count is repeated, the completion's is what each event adds."""
        prompt, added = raw.get("num_input_tokens"), raw.get("num_output_tokens")
        if isinstance(prompt, int):
            self._input_tokens = prompt
        if isinstance(added, int):
            self._output_tokens = (self._output_tokens or 0) + added
        reason = raw.get("finish_reason")
        if isinstance(reason, str) and reason not in {"", "None"}:
            self._finish_reason = reason
            self.is_finished = True

    def _chunks(self, text: str, *, is_first: bool) -> list[Chunk]:
        choice = self._choice(text, finish_reason=None)
        if is_first and self._is_chat:
            choice["delta"]["role"] = "assistant"
        return [self._chunk([choice], has_content=bool(text))] if text or is_first else []

    def _choice(self, text: str, *, finish_reason: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason, "logprobs": None}
        if self._is_chat:
            choice["delta"] = {"content": text} if text or finish_reason is None else {}
        else:
            choice["text"] = text
        return choice

    def _chunk(self, choices: list[dict[str, Any]], *, has_content: bool) -> Chunk:
        return Chunk(orjson.dumps({**self._frame, "choices": choices}), has_content)

    def _reason(self) -> str:
        """Why it ended: the server's word, else `length` when the maximum was reached."""
        if self._finish_reason:
            return self._finish_reason
        maximum = self._order.max_output_tokens or _DEFAULT_MAX_TOKENS
        return "length" if (self._output_tokens or 0) >= maximum else "stop"


def _frame(order: Order) -> dict[str, Any]:
    """What every chunk of an answer repeats."""
    is_chat = order.endpoint == "chat.completions"
    return {
        "id": ("chatcmpl-" if is_chat else "cmpl-") + uuid4().hex,
        "object": "chat.completion.chunk" if is_chat else "text_completion",
        "created": int(time.time()),
        "model": order.model,
    }


def _prompt(order: Order) -> str:
    if order.endpoint == "chat.completions":
        return render_chat(order.body["messages"])
    prompt = order.body["prompt"]
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise _unsupported("prompt", "must be one text for this model")
    return prompt


def _refuse_what_is_not_supported(order: Order) -> None:
    if order.choices > 1:
        raise _unsupported("n", "must be 1 for this model")
    for name in _NOT_SUPPORTED:
        value = order.body.get(name)
        if value and value != {"type": "text"} and value != "none":
            raise _unsupported(name, "is not supported by this model")


def _unsupported(field: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{field} {message}", code="parameter_not_supported", fields={field: [message]}
    )


def _event_object(data: bytes) -> dict[str, Any]:
    try:
        raw = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise UpstreamProtocolError("the model server answered something that is no JSON") from exc
    if not isinstance(raw, dict):
        raise UpstreamProtocolError("the model server answered JSON that is no object")
    return raw

"""OpenAI's format, in which the gateway thinks: nothing to translate."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from apps.core.errors import InferAdminError
from apps.gateway.adapters.contract import Answer, Chunk
from apps.gateway.errors import envelope
from apps.gateway.orders import Endpoint, Format, Order, order_of
from apps.gateway.sse import DONE, event_of

_END = event_of(DONE)


class OpenAiFront:
    """Chat, completions, embeddings or rerank, as `endpoint` says."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def order_of(self, body: Any, headers: Mapping[str, str]) -> Order:
        del headers
        return order_of(self._endpoint, body)

    def whole(self, order: Order, answer: Answer) -> bytes:
        del order
        return answer.body

    def presenter(self, order: Order, chunk_format: Format) -> "OpenAiPresenter":
        del order, chunk_format
        return PRESENTER

    def error(self, error: InferAdminError) -> Mapping[str, Any]:
        return envelope(error)


class OpenAiPresenter:
    """Events without names, `[DONE]` at the end. It remembers nothing, so one serves all."""

    def take(self, chunks: Sequence[Chunk]) -> bytes:
        return b"".join([event_of(chunk.data) for chunk in chunks])

    def end(self) -> bytes:
        return _END

    def fail(self, error: InferAdminError) -> bytes:
        return event_of(orjson.dumps(envelope(error))) + _END


PRESENTER = OpenAiPresenter()

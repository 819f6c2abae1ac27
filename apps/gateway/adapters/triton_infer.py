"""Embeddings of a model behind Triton's infer endpoint (KServe v2, JSON).

The model reads texts from a BYTES tensor `text_input` of shape [n] and writes an FP32 tensor of
shape [n, dimensions]; an integer tensor `num_input_tokens` of shape [n] tells what it has read.
"""

import struct
from base64 import b64encode
from typing import Any

import orjson

from apps.core.errors import InferAdminError, InvalidRequestError, UpstreamProtocolError
from apps.gateway.adapters.contract import Answer, StreamReader, UpstreamRequest
from apps.gateway.adapters.triton import triton_failure, triton_headers, triton_url
from apps.gateway.orders import Endpoint, Order
from apps.gateway.snapshot import TargetRow
from apps.gateway.usage import Usage

_INPUT = "text_input"
_TOKENS = "num_input_tokens"
Tensor = dict[str, Any]


class TritonInferAdapter:
    """OpenAI embeddings over `infer`."""

    endpoints: frozenset[Endpoint] = frozenset({"embeddings"})

    def request_for(self, order: Order, target: TargetRow) -> UpstreamRequest:
        if order.body.get("dimensions") is not None:
            raise _unsupported("dimensions", "cannot be chosen for this model")
        texts = _texts(order.body["input"])
        tensor = {"name": _INPUT, "datatype": "BYTES", "shape": [len(texts)], "data": texts}
        return UpstreamRequest(
            url=triton_url(target, "infer"),
            body=orjson.dumps({"inputs": [tensor]}),
            headers=triton_headers(target),
        )

    def answer_of(self, order: Order, target: TargetRow, body: bytes) -> Answer:
        del target
        outputs = _outputs(body)
        vectors = _vectors(outputs, len(_texts(order.body["input"])))
        usage = _usage(outputs, order)
        is_base64 = order.body.get("encoding_format") == "base64"
        raw = {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": _base64(vector) if is_base64 else vector,
                }
                for index, vector in enumerate(vectors)
            ],
            "model": order.model,
            "usage": {"prompt_tokens": usage.input_tokens, "total_tokens": usage.total_tokens},
        }
        return Answer(body=orjson.dumps(raw), usage=usage)

    def reader_for(self, order: Order, target: TargetRow) -> StreamReader:
        raise NotImplementedError("embeddings are never streamed")

    def failure_of(
        self, target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None
    ) -> InferAdminError:
        return triton_failure(target, status, body, retry_after_seconds)


def _texts(value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not all(isinstance(text, str) for text in texts):
        raise _unsupported("input", "must be a text or a list of texts for this model")
    return list(texts)


def _outputs(body: bytes) -> dict[str, Tensor]:
    try:
        raw = orjson.loads(body)
        return {tensor["name"]: tensor for tensor in raw["outputs"]}
    except (orjson.JSONDecodeError, KeyError, TypeError) as exc:
        raise UpstreamProtocolError("the model server answered no tensors") from exc


def _vectors(outputs: dict[str, Tensor], count: int) -> list[list[float]]:
    """The rows of the first FP32 matrix with a row for each text."""
    for tensor in outputs.values():
        shape, data = tensor.get("shape"), tensor.get("data")
        if tensor.get("datatype") != "FP32" or not isinstance(shape, list) or len(shape) != 2:
            continue
        rows, width = shape
        if rows == count and isinstance(data, list) and len(data) == rows * width:
            return [data[row * width : (row + 1) * width] for row in range(rows)]
    raise UpstreamProtocolError("the model server answered no vector for each text")


def _usage(outputs: dict[str, Tensor], order: Order) -> Usage:
    counts = outputs.get(_TOKENS, {}).get("data")
    if isinstance(counts, list) and all(isinstance(count, int) for count in counts):
        return Usage(sum(counts), 0)
    return Usage(order.input_tokens_held, 0, is_estimated=True)


def _base64(vector: list[float]) -> str:
    """Little-endian FP32, as OpenAI's clients ask for by default."""
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _unsupported(field: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{field} {message}", code="parameter_not_supported", fields={field: [message]}
    )

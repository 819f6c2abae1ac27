"""Triton's generate and infer, translated from and to OpenAI's format without a server."""

import struct
from base64 import b64decode
from dataclasses import replace
from typing import Any

import orjson
import pytest

from apps.core.errors import InferAdminError, InvalidRequestError, UpstreamError
from apps.gateway.adapters.chat_template import render_chat
from apps.gateway.adapters.triton_generate import TritonGenerateAdapter
from apps.gateway.adapters.triton_infer import TritonInferAdapter
from apps.gateway.orders import Endpoint, Order, order_of
from apps.gateway.snapshot import ServerRow, TargetRow
from apps.gateway.sse import Event

GENERATE, INFER = TritonGenerateAdapter(), TritonInferAdapter()
SERVER = ServerRow(1, "gpu-1", "triton", "http://triton:8000/", False, secret="")
TARGET = TargetRow(1, SERVER, "llm", 3, "triton_generate", 0, 1, True, None)


def order(endpoint: Endpoint = "chat.completions", **fields: Any) -> Order:
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], **fields}
    found = order_of(endpoint, body)
    return replace(found, max_output_tokens=found.max_output_tokens or 64)


def event(**fields: Any) -> Event:
    return Event(orjson.dumps({"model_name": "llm", "model_version": "3", **fields}))


def test_a_chat_becomes_a_prompt_for_the_pinned_version() -> None:
    wanted = order(
        messages=[{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}],
        temperature=0.5,
        stop="END",
        stream=True,
    )

    request = GENERATE.request_for(wanted, TARGET)

    assert request.url == "http://triton:8000/v2/models/llm/versions/3/generate_stream"
    body = orjson.loads(request.body)
    assert body["text_input"] == (
        "<|im_start|>system\nBe kind<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert (body["stream"], body["max_tokens"], body["temperature"]) == (True, 64, 0.5)
    assert orjson.loads(body["sampling_parameters"]) == {
        "temperature": 0.5,
        "stop": ["END"],
        "max_tokens": 64,
    }
    assert body["return_num_output_tokens"] is True


def test_without_a_version_the_server_chooses() -> None:
    request = GENERATE.request_for(order(), replace(TARGET, version=None))

    assert request.url == "http://triton:8000/v2/models/llm/generate_stream"


def test_a_stream_of_outputs_becomes_chunks_with_the_counts_of_the_server() -> None:
    wanted = order(stream=True, stream_options={"include_usage": True})
    reader = GENERATE.reader_for(wanted, TARGET)

    chunks = [
        *reader.take(event(text_output="Hel", num_input_tokens=11, num_output_tokens=1)),
        *reader.take(event(text_output="lo", num_input_tokens=11, num_output_tokens=2)),
        *reader.take(event(text_output="", finish_reason="length", num_output_tokens=1)),
        *reader.end(),
    ]

    raw = [orjson.loads(chunk.data) for chunk in chunks]
    assert raw[0]["choices"][0]["delta"] == {"content": "Hel", "role": "assistant"}
    assert raw[1]["choices"][0]["delta"] == {"content": "lo"}
    assert raw[2]["choices"][0]["finish_reason"] == "length"
    assert raw[3]["choices"] == []
    assert raw[3]["usage"] == {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
    assert len({item["id"] for item in raw}) == 1
    assert reader.is_finished
    assert not reader.usage().is_estimated


def test_a_model_that_does_not_count_is_estimated() -> None:
    reader = GENERATE.reader_for(order(stream=True), TARGET)

    reader.take(event(text_output="Hello there, how are you?"))

    assert reader.usage().is_estimated
    assert reader.usage().output_tokens == 7
    assert reader.ends_by_closing
    assert not reader.is_finished


def test_a_whole_answer_is_put_together() -> None:
    body = b'data: {"text_output":"Hello","num_input_tokens":4,"num_output_tokens":64}\n\n'

    answer = GENERATE.answer_of(order(), TARGET, body)

    raw = orjson.loads(answer.body)
    assert raw["choices"][0]["message"] == {"role": "assistant", "content": "Hello"}
    assert raw["choices"][0]["finish_reason"] == "length"
    assert (raw["object"], answer.usage.output_tokens) == ("chat.completion", 64)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("kv cache exhausted", "upstream_failed"),
        ("Exceeds maximum queue size", "upstream_busy"),
        ("Request timeout expired", "upstream_busy"),
        ("Request for unknown model: 'llm' is not found", "model_not_loaded"),
    ],
)
def test_an_error_inside_a_200_is_a_failure(message: str, code: str) -> None:
    reader = GENERATE.reader_for(order(stream=True), TARGET)

    with pytest.raises(UpstreamError) as caught:
        reader.take(event(error=message))

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("status", "text", "told", "code"),
    [
        (400, "Request for unknown model: 'llm' version 3 is not found", 502, "model_not_loaded"),
        (503, "Request timeout expired", 503, "upstream_busy"),
        (500, "Unable to parse 'data': attempt to access JSON", 400, "invalid_request"),
        (400, "Stub process 'llm_0_0' is not healthy.", 502, "upstream_failed"),
        (500, "Traceback (most recent call last): /models/llm/1/model.py", 502, "upstream_failed"),
    ],
)
def test_what_triton_means_is_told_by_its_words(
    status: int, text: str, told: int, code: str
) -> None:
    found: InferAdminError = GENERATE.failure_of(
        TARGET, status, orjson.dumps({"error": text}), None
    )

    assert (found.status, found.code) == (told, code)
    assert "/models/" not in found.message


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"n": 2}, "n"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages.0.content",
        ),
    ],
)
def test_what_the_model_cannot_do_is_refused_by_name(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        GENERATE.request_for(order(**fields), TARGET)

    assert list(caught.value.fields) == [field]


def test_parts_of_text_are_joined() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]

    assert "user\nHello<|im_end|>" in render_chat([{"role": "user", "content": parts}])


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{% for x in messages %}{{ x.clear() }}{% endfor %}",
        "{{ raise_exception('no system role') }}",
    ],
)
def test_a_template_cannot_leave_its_sandbox(template: str) -> None:
    with pytest.raises(InvalidRequestError):
        render_chat([{"role": "user", "content": "Hi"}], template)


def outputs(**tokens: Any) -> bytes:
    vector = {"name": "embedding", "datatype": "FP32", "shape": [2, 2], "data": [1, 0.5, 0, -1]}
    return orjson.dumps(
        {"outputs": [vector, *([{"name": "num_input_tokens", **tokens}] if tokens else [])]}
    )


def test_texts_become_a_tensor_and_vectors_come_back() -> None:
    wanted = order("embeddings", input=["a", "b"])

    request = INFER.request_for(wanted, TARGET)
    answer = INFER.answer_of(wanted, TARGET, outputs(datatype="INT32", shape=[2], data=[3, 4]))

    assert request.url.endswith("/v2/models/llm/versions/3/infer")
    assert orjson.loads(request.body)["inputs"] == [
        {"name": "text_input", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]}
    ]
    raw = orjson.loads(answer.body)
    assert [item["embedding"] for item in raw["data"]] == [[1, 0.5], [0, -1]]
    assert raw["usage"] == {"prompt_tokens": 7, "total_tokens": 7}


def test_vectors_come_in_base64_when_asked_for() -> None:
    wanted = order("embeddings", input=["a", "b"], encoding_format="base64")

    answer = INFER.answer_of(wanted, TARGET, outputs())

    first = orjson.loads(answer.body)["data"][0]["embedding"]
    assert struct.unpack("<2f", b64decode(first)) == (1.0, 0.5)
    assert answer.usage.is_estimated


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"outputs": []}', b'{"outputs": 3}'])
def test_tensors_that_are_none_are_a_failure(body: bytes) -> None:
    with pytest.raises(UpstreamError):
        INFER.answer_of(order("embeddings", input="a"), TARGET, body)

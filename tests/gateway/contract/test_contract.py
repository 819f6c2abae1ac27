"""The contract that every adapter keeps, whatever its server speaks."""

from typing import Any

import orjson
import pytest

from apps.core.errors import InferAdminError, UpstreamError, UpstreamProtocolError
from apps.gateway.adapters.contract import Chunk
from apps.gateway.errors import RequestRefusedError, UpstreamBusyError
from apps.gateway.orders import Order
from apps.gateway.sse import EventParser
from apps.gateway.usage import Usage
from tests.gateway.contract.cases import CASES, SECRET, TEXT, Case

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def read(case: Case, order: Order, pieces: list[bytes]) -> tuple[list[Chunk], Usage]:
    """Chunks and usage of a stream that ends well."""
    reader, parser = case.adapter.reader_for(order, case.target), EventParser()
    chunks: list[Chunk] = []
    for event in [*(e for piece in pieces for e in parser.feed(piece)), *parser.finish()]:
        chunks += reader.take(event)
    assert reader.is_finished or reader.ends_by_closing
    return [*chunks, *reader.end()], reader.usage()


def text_of(chunks: list[Chunk]) -> str:
    choices = [choice for chunk in chunks for choice in orjson.loads(chunk.data)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@each_case
@pytest.mark.parametrize("is_stream", [False, True])
def test_the_request_is_json_and_shows_its_key_in_one_header_only(
    case: Case, is_stream: bool
) -> None:
    request = case.adapter.request_for(case.order(stream=is_stream), case.target)

    assert isinstance(orjson.loads(request.body), dict)
    assert [name for name, value in request.headers.items() if SECRET in value] == [case.key_header]
    assert SECRET not in request.url + repr(request) + request.body.decode()


@each_case
def test_the_server_is_told_the_maximum(case: Case) -> None:
    request = case.adapter.request_for(case.order(), case.target)

    assert b"64" in request.body


@each_case
def test_a_whole_answer_is_an_openai_object_with_usage(case: Case) -> None:
    answer = case.adapter.answer_of(case.order(), case.target, case.whole)

    raw = orjson.loads(answer.body)
    assert raw["object"] == "chat.completion"
    assert raw["choices"][0]["message"] == {"role": "assistant", "content": TEXT}
    assert raw["choices"][0]["finish_reason"] == "stop"
    assert raw["usage"] == {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    assert answer.usage == Usage(7, 2)


@each_case
def test_a_stream_reads_the_same_wherever_it_is_cut(case: Case) -> None:
    order = case.order(stream=True, stream_options={"include_usage": True})
    data = b"".join(case.events)

    for cut in range(1, len(data)):
        chunks, usage = read(case, order, [data[:cut], data[cut:]])

        assert (text_of(chunks), usage) == (TEXT, Usage(7, 2))
    last = orjson.loads(chunks[-1].data)
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 9)
    assert {orjson.loads(chunk.data)["object"] for chunk in chunks} == {"chat.completion.chunk"}


@each_case
def test_usage_is_hidden_from_a_client_that_did_not_ask(case: Case) -> None:
    chunks, usage = read(case, case.order(stream=True), case.events)

    assert usage == Usage(7, 2)
    assert not any("usage" in orjson.loads(chunk.data) for chunk in chunks)


@each_case
def test_usage_that_is_missing_is_guessed_and_says_so(case: Case) -> None:
    whole = case.adapter.answer_of(case.order(), case.target, case.uncounted_whole).usage
    _chunks, streamed = read(case, case.order(stream=True), case.uncounted_events)

    for usage in (whole, streamed):
        assert usage.is_estimated
        assert usage.input_tokens == case.order().input_tokens_held
        assert usage.output_tokens > 0


@each_case
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>502 Bad Gateway</html>",
        b"[1, 2]",
        b'"text"',
        b'{"choices": [',
        b'{"choices": ["\\ud800"]}',
        b'{"choices": "x", "content": "x", "candidates": "x"}',
    ],
)
def test_nonsense_is_a_failure_of_the_server(case: Case, body: bytes) -> None:
    if case.name == "triton_generate":
        body = b"data: " + (body if body[:1] in b"<[" and body else b"[1]") + b"\n\n"

    with pytest.raises(UpstreamProtocolError):
        case.adapter.answer_of(case.order(), case.target, body)


@each_case
def test_an_error_inside_a_200_is_a_failure_that_another_target_may_mend(case: Case) -> None:
    overloaded: Any = {"type": "overloaded_error", "message": f"key {SECRET}"}
    error = orjson.dumps({"type": "error", "error": overloaded})
    if case.name == "triton_generate":
        error = orjson.dumps({"error": "exceeds maximum queue size"})
    order = case.order(stream=True)

    with pytest.raises(UpstreamError) as caught:
        read(case, order, [b"event: error\ndata: " + error + b"\n\n"])

    assert (caught.value.code, caught.value.may_retry) == ("upstream_busy", True)
    assert SECRET not in caught.value.message


@each_case
@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, RequestRefusedError, "request_refused"),
        (413, RequestRefusedError, "request_refused"),
        (422, RequestRefusedError, "request_refused"),
        (401, UpstreamError, "upstream_misconfigured"),
        (402, UpstreamError, "upstream_misconfigured"),
        (403, UpstreamError, "upstream_misconfigured"),
        (404, UpstreamError, "upstream_misconfigured"),
        (408, UpstreamError, "upstream_failed"),
        (409, UpstreamError, "upstream_failed"),
        (429, UpstreamBusyError, "upstream_busy"),
        (500, UpstreamError, "upstream_failed"),
        (502, UpstreamError, "upstream_failed"),
        (503, UpstreamBusyError, "upstream_busy"),
        (504, UpstreamError, "upstream_failed"),
        (529, UpstreamBusyError, "upstream_busy"),
    ],
)
def test_each_status_means_one_kind_of_failure(
    case: Case, status: int, kind: type[InferAdminError], code: str
) -> None:
    body = orjson.dumps({"error": {"message": f"not with {SECRET}"}})

    failure = case.adapter.failure_of(case.target, status, body, None)

    assert (type(failure), failure.code) == (kind, code)
    assert SECRET not in failure.message + repr(failure)


@each_case
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "Your credit balance is too low to access the API"}),
        (400, {"message": "API key not valid. Please pass a valid API key."}),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}),
    ],
)
def test_what_is_wrong_with_our_account_is_not_the_callers_fault(
    case: Case, status: int, error: dict[str, str]
) -> None:
    body = orjson.dumps({"error": error})

    failure = case.adapter.failure_of(case.target, status, body, None)

    assert failure.code == "upstream_misconfigured"


@each_case
def test_a_refusal_that_quotes_the_request_stays_the_callers(case: Case) -> None:
    body = orjson.dumps({"error": {"message": "no tool is named “insufficient_quota”"}})

    failure = case.adapter.failure_of(case.target, 400, body, None)

    assert type(failure) is RequestRefusedError

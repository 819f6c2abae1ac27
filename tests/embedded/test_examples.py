"""The example models do on a real Triton what their configuration promises."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from inferadmin.embedded.llamacpp import MODEL_NAME, LlamaCpp
from inferadmin.embedded.models import EXAMPLES
from inferadmin.embedded.triton import Triton

PROMPT = "<|im_start|>user\nWhat is a cat?<|im_end|>\n<|im_start|>assistant\n"
COUNTS = {"return_num_input_tokens": True, "return_num_output_tokens": True}


@pytest.fixture(scope="module")
def client(triton: Triton) -> Iterator[httpx.Client]:
    """Triton's HTTP interface with every example loaded."""
    with httpx.Client(base_url=triton.url, timeout=60) as client:
        for name in sorted(EXAMPLES):
            client.post(f"/v2/repository/models/{name}/load").raise_for_status()
        yield client
        for name in sorted(EXAMPLES):
            client.post(f"/v2/repository/models/{name}/unload").raise_for_status()


def generate(client: httpx.Client, **body: object) -> httpx.Response:
    return client.post("/v2/models/smollm2/generate", json={"text_input": PROMPT, **body})


def stream(client: httpx.Client, **body: object) -> list[dict[str, Any]]:
    body = {"text_input": PROMPT, "stream": True, **body}
    with client.stream("POST", "/v2/models/smollm2/generate_stream", json=body) as answer:
        return [json.loads(line[5:]) for line in answer.iter_lines() if line]


def outputs(answer: httpx.Response) -> dict[str, Any]:
    return {item["name"]: item for item in answer.raise_for_status().json()["outputs"]}


def infer(client: httpx.Client, path: str, name: str, shape: list[int], texts: list[str]) -> Any:
    tensor = {"name": name, "shape": shape, "datatype": "BYTES", "data": texts}
    return outputs(client.post(f"/v2/models/{path}/infer", json={"inputs": [tensor]}))


def test_language_model_answers_in_one_piece_with_exact_counts(client: httpx.Client) -> None:
    answer = generate(client, max_tokens=12, return_finish_reason=True, **COUNTS).json()

    assert answer["text_output"]
    assert answer["num_input_tokens"] == 14
    assert answer["num_output_tokens"] == 12
    assert answer["finish_reason"] == "length"


def test_language_model_streams_token_by_token(client: httpx.Client) -> None:
    pieces = stream(
        client, max_tokens=24, seed=7, temperature=0, return_finish_reason=True, **COUNTS
    )
    whole = generate(client, max_tokens=24, seed=7, temperature=0).json()["text_output"]

    assert len(pieces) > 10
    assert "".join(piece["text_output"] for piece in pieces) == whole
    assert sum(piece["num_output_tokens"] for piece in pieces) == 24
    assert {piece["num_input_tokens"] for piece in pieces} == {14}
    assert [piece["finish_reason"] for piece in pieces if "finish_reason" in piece] == ["length"]


def test_language_model_takes_sampling_parameters_as_vllm_does(client: httpx.Client) -> None:
    parameters = json.dumps({"max_tokens": 3, "temperature": 0})

    answer = generate(client, sampling_parameters=parameters, **COUNTS).json()

    assert answer["num_output_tokens"] == 3


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"text_input": "word " * 4000}, "exceeds the available context size"),
        ({"sampling_parameters": "{"}, "Expecting property name"),
        ({"sampling_parameters": '{"temperature": "hot"}'}, "temperature"),
    ],
)
def test_language_model_refuses_what_it_cannot_do(
    client: httpx.Client, body: dict[str, object], problem: str
) -> None:
    answer = generate(client, **body)

    assert answer.status_code == 400
    assert problem in answer.json()["error"]


def test_language_model_answers_a_request_without_a_prompt(client: httpx.Client) -> None:
    answer = client.post("/v2/models/smollm2/generate", json={"stream": False, "max_tokens": 1})

    assert answer.json() == {"error": "the input text_input is missing"}


def test_language_model_stops_when_its_client_has_gone(client: httpx.Client) -> None:
    endless = {"sampling_parameters": json.dumps({"max_tokens": 1900, "ignore_eos": True})}
    body = {"text_input": PROMPT, "stream": True, **endless}
    with client.stream("POST", "/v2/models/smollm2/generate_stream", json=body) as answer:
        next(answer.iter_lines())

    began = time.monotonic()
    generate(client, max_tokens=40).raise_for_status()

    # Alone it takes half a second, beside an abandoned generation about twice that, and longer
    # still for the four that fit.
    assert time.monotonic() - began < 5


def test_language_model_serves_several_at_once(client: httpx.Client) -> None:
    counts: list[int] = []

    def ask() -> None:
        counts.append(generate(client, max_tokens=8, **COUNTS).json()["num_output_tokens"])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counts == [8] * 6


@pytest.mark.parametrize("version", [1, 2])
def test_both_classifiers_know_languages(client: httpx.Client, version: int) -> None:
    texts = ["Guten Morgen, wie geht es dir heute?", "今天天气很好我们去公园散步吧"]

    found = infer(client, f"language-id/versions/{version}", "TEXT", [2, 1], texts)

    assert found["LABEL"]["data"] == ["de", "zh"]
    assert all(0.5 < score <= 1 for score in found["SCORE"]["data"])


def test_versions_of_the_classifier_differ(client: httpx.Client) -> None:
    text = ["Buna dimineata"]

    old, new = (infer(client, f"language-id/versions/{n}", "TEXT", [1, 1], text) for n in (1, 2))

    assert old["SCORE"]["data"] != new["SCORE"]["data"]


def test_alike_sentences_have_near_vectors(client: httpx.Client) -> None:
    texts = ["A cat sits on the mat", "A kitten rests on a rug", "Revenue grew by five percent"]

    found = infer(client, "minilm", "text_input", [3], texts)

    assert found["embedding"]["shape"] == [3, 384]
    assert found["num_input_tokens"]["data"] == [8, 8, 7]
    numbers = found["embedding"]["data"]
    cat, kitten, money = (numbers[start : start + 384] for start in (0, 384, 768))
    assert dot(cat, cat) == pytest.approx(1, abs=1e-4)
    assert dot(cat, kitten) > 0.5 > 0.2 > dot(cat, money)


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_llama_cpp_wants_its_key(llama_cpp: LlamaCpp) -> None:
    assert httpx.get(f"{llama_cpp.url}/v1/models").status_code == 401


def test_llama_cpp_answers_with_usage(llama_cpp: LlamaCpp) -> None:
    body = {
        "model": MODEL_NAME,
        "messages": [{"role": "user", "content": "What is a cat?"}],
        "max_tokens": 5,
    }
    headers = {"Authorization": f"Bearer {llama_cpp.api_key}"}

    answer = httpx.post(f"{llama_cpp.url}/v1/chat/completions", json=body, headers=headers)

    assert answer.json()["usage"]["completion_tokens"] == 5
    assert (
        "llamacpp:tokens_predicted_total" in httpx.get(llama_cpp.metrics_url, headers=headers).text
    )

"""Metrics pages of every engine, in our words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.errors import UpstreamProtocolError
from apps.metrics.readings import Reading, reading_of

FIXTURES = Path(__file__).parent / "fixtures"
GPU = "GPU-1f0c6a7e-0000-4000-8000-00000000000"


def read(name: str) -> Reading:
    return reading_of((FIXTURES / f"{name}.txt").read_text(encoding="utf-8"))


def test_a_real_triton_on_a_cpu() -> None:
    reading = read("triton_cpu")

    assert set(reading.counters) == {("language-id", "1"), ("language-id", "2")}
    assert reading.counters["language-id", "1"] == pytest.approx(
        {
            "succeeded": 3,
            "latency_count": 3,
            "queue_count": 3,
            "failed": 0,
            "latency_seconds": 0.036382,
            "queue_seconds": 0.001269,
            "inferences": 3,
            "executions": 3,
        }
    )
    assert reading.gauges["language-id", "1"] == {"pending": 0}
    assert set(reading.machine) == {"cpu_ratio", "memory_used_bytes", "memory_total_bytes"}
    assert reading.gpus == {}


def test_triton_counters_are_summed_over_gpus_and_reasons() -> None:
    counters = read("triton_gpu").counters

    assert counters["resnet", "1"]["succeeded"] == 150
    assert counters["resnet", "1"]["failed"] == 3
    assert counters["resnet", "1"]["latency_seconds"] == 1.5
    assert "failed" not in counters["ensemble", "1"]


def test_only_waiting_requests_of_tensorrt_llm_are_pending() -> None:
    assert read("triton_gpu").gauges["ensemble", "1"] == {"pending": 3}


def test_a_gpu_whose_total_is_zero_has_unknown_memory_and_load() -> None:
    gpus = read("triton_gpu").gpus

    assert gpus[f"{GPU}1"]["memory_used_bytes"] == 42949672960
    assert gpus[f"{GPU}2"] == {
        "utilization_ratio": 0.25,
        "memory_total_bytes": 85899345920,
        "memory_used_bytes": 0,
        "power_watts": 71.2,
    }
    assert gpus[f"{GPU}3"] == {}


def test_vllm_is_summed_over_engines() -> None:
    reading = read("vllm")

    key = ("Qwen/Qwen3-0.6B", "")
    assert reading.counters[key] == {
        "succeeded": 100,
        "output_tokens": 9000,
        "latency_seconds": 150,
        "latency_count": 100,
        "queue_seconds": 2.5,
        "queue_count": 100,
    }
    assert reading.gauges[key] == {"pending": 3}


def test_sglang() -> None:
    reading = read("sglang")

    counters = reading.counters["meta-llama/Llama-3.1-8B-Instruct", ""]
    assert counters["succeeded"] == 11008
    assert counters["failed"] == 4
    assert "queue_seconds" not in counters
    assert reading.gauges["meta-llama/Llama-3.1-8B-Instruct", ""] == {"pending": 2826}


def test_tgi_names_no_model() -> None:
    reading = read("tgi")

    assert reading.counters["", ""]["succeeded"] == 200
    assert reading.counters["", ""]["failed"] == 10
    assert reading.counters["", ""]["output_tokens"] == 20000
    assert reading.gauges["", ""] == {"pending": 5}


def test_a_real_llama_cpp_counts_tokens_but_no_requests() -> None:
    reading = read("llama_cpp")

    assert reading.counters == {("", ""): {"output_tokens": 8}}
    assert reading.gauges == {("", ""): {"pending": 0}}


def test_figures_of_a_backend_stand_above_those_of_triton() -> None:
    labels = '{model="llm",version="1"}'
    text = f"nv_inference_request_success{labels} 5\nvllm:request_success_total{labels} 3\n"

    counters = reading_of(text).counters["llm", "1"]

    assert counters["succeeded"] == 3
    assert counters["latency_count"] == 5


@pytest.mark.parametrize("text", ["", "\n\n", "# HELP nv_x y\n# TYPE nv_x counter\n", "other 1\n"])
def test_a_server_without_models_has_nothing_to_say(text: str) -> None:
    assert reading_of(text) == Reading()


@pytest.mark.parametrize(
    "text",
    [
        "<!doctype html><html><body>Sign in</body></html>",
        '{"error": "not found"}',
        "\x00\x01\x02",
        "404 page not found",
    ],
)
def test_what_is_no_prometheus_text_is_refused(text: str) -> None:
    with pytest.raises(UpstreamProtocolError) as caught:
        reading_of(text)

    assert caught.value.code == "not_prometheus"


@pytest.mark.parametrize(
    "line",
    [
        "nv_inference_request_success{model=",
        'nv_inference_request_success{model="m",version="1"}',
        'nv_inference_request_success{model="m",version="1"} x',
        'nv_inference_request_success{model="m",version="1"} NaN',
        'nv_inference_request_success{model="m",version="1"} +Inf',
    ],
)
def test_a_broken_line_is_passed_over(line: str) -> None:
    text = f'{line}\nnv_inference_request_success{{model="m",version="1"}} 7 1700000000\n'

    assert reading_of(f"# TYPE x counter\n{text}").counters["m", "1"]["succeeded"] == 7


def test_braces_and_quotes_in_labels_do_not_confuse() -> None:
    text = r'tgi_request_failure{err="a \"b\" } \\ {"} 4' + "\n"

    assert reading_of(text).counters["", ""] == {"failed": 4}


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        reading = reading_of(f"# TYPE x counter\nnv_cpu_utilization{text}")
    except UpstreamProtocolError:
        return
    assert reading.gpus == {}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["a", 'a="b",', "\\\\", '"', "{"])
def test_a_hostile_line_takes_no_longer_than_its_length(piece: str) -> None:
    line = "tgi_request_failure{" + piece * 200_000

    assert reading_of(f"# TYPE x counter\n{line} 1\n") == Reading()

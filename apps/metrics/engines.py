"""What each engine calls the numbers that we show.

A rule says where one family of an engine goes. The families' names do not overlap, so all tables
are read at once: a Triton with the vLLM backend reports both `nv_*` and `vllm:*`, and then the
backend's own figures, which know about streams, stand above Triton's. A family that is missing
leaves its figure unknown, and one that has no rule is not even parsed.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "machine", "gpu"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Where the samples of a family go.

    `counter` and `gauge` belong to a model and version and are summed over all other labels,
    `machine` to the server, `gpu` to the label `gpu_uuid`. `where` takes only samples with that
    label and value.
    """

    kind: Kind
    names: tuple[str, ...]
    scale: float = 1.0
    where: tuple[str, str] | None = None


def _counter(*names: str, scale: float = 1.0) -> Rule:
    return Rule("counter", names, scale)


def _gauge(name: str, where: tuple[str, str] | None = None) -> Rule:
    return Rule("gauge", (name,), where=where)


_MICROSECONDS = 1e-6

# Durations are sums over successes, so one counter is the divisor of all of them.
TRITON = {
    "nv_inference_request_success": _counter("succeeded", "latency_count", "queue_count"),
    "nv_inference_request_failure": _counter("failed"),
    "nv_inference_request_duration_us": _counter("latency_seconds", scale=_MICROSECONDS),
    "nv_inference_queue_duration_us": _counter("queue_seconds", scale=_MICROSECONDS),
    "nv_inference_count": _counter("inferences"),
    "nv_inference_exec_count": _counter("executions"),
    "nv_inference_pending_request_count": _gauge("pending"),
    "nv_trt_llm_request_metrics": _gauge("pending", where=("request_type", "waiting")),
    "nv_cpu_utilization": Rule("machine", ("cpu_ratio",)),
    "nv_cpu_memory_used_bytes": Rule("machine", ("memory_used_bytes",)),
    "nv_cpu_memory_total_bytes": Rule("machine", ("memory_total_bytes",)),
    "nv_gpu_utilization": Rule("gpu", ("utilization_ratio",)),
    "nv_gpu_memory_used_bytes": Rule("gpu", ("memory_used_bytes",)),
    "nv_gpu_memory_total_bytes": Rule("gpu", ("memory_total_bytes",)),
    "nv_gpu_power_usage": Rule("gpu", ("power_watts",)),
}

VLLM = {
    "vllm:request_success_total": _counter("succeeded"),
    "vllm:e2e_request_latency_seconds_sum": _counter("latency_seconds"),
    "vllm:e2e_request_latency_seconds_count": _counter("latency_count"),
    "vllm:request_queue_time_seconds_sum": _counter("queue_seconds"),
    "vllm:request_queue_time_seconds_count": _counter("queue_count"),
    "vllm:generation_tokens_total": _counter("output_tokens"),
    "vllm:num_requests_waiting": _gauge("pending"),
}

SGLANG = {
    "sglang:num_requests_total": _counter("succeeded"),
    "sglang:num_aborted_requests_total": _counter("failed"),
    "sglang:e2e_request_latency_seconds_sum": _counter("latency_seconds"),
    "sglang:e2e_request_latency_seconds_count": _counter("latency_count"),
    "sglang:queue_time_seconds_sum": _counter("queue_seconds"),
    "sglang:queue_time_seconds_count": _counter("queue_count"),
    "sglang:generation_tokens_total": _counter("output_tokens"),
    "sglang:num_queue_reqs": _gauge("pending"),
}

TGI = {
    "tgi_request_success": _counter("succeeded"),
    "tgi_request_failure": _counter("failed"),
    "tgi_request_duration_sum": _counter("latency_seconds"),
    "tgi_request_duration_count": _counter("latency_count"),
    "tgi_request_queue_duration_sum": _counter("queue_seconds"),
    "tgi_request_queue_duration_count": _counter("queue_count"),
    "tgi_request_generated_tokens_sum": _counter("output_tokens"),
    "tgi_queue_size": _gauge("pending"),
}

# It counts no requests and no latency: those come from what the gateway has sent it.
LLAMA_CPP = {
    "llamacpp:tokens_predicted_total": _counter("output_tokens"),
    "llamacpp:requests_deferred": _gauge("pending"),
}

# Later tables stand above earlier ones where both tell the same of a model.
TABLES = (TRITON, VLLM, SGLANG, TGI, LLAMA_CPP)
FAMILIES = {
    family: (position, rule)
    for position, table in enumerate(TABLES)
    for family, rule in table.items()
}

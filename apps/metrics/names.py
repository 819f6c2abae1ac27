"""The words of telemetry: topics that a page can watch, and the series behind each.

A topic is `overview` or `server:<id>`. Every series of a topic is one metric with labels;
`series_name` says under which name pages know it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from apps.core.errors import InvalidRequestError

# What the gateway measured over all routes, and the machines summed up.
OVERVIEW_METRICS = (
    "requests_per_second",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "first_token_p95_ms",
    "tokens_per_second",
    "error_ratio",
    "in_flight",
    "cpu_ratio",
    "memory_used_bytes",
    "memory_total_bytes",
    "gpu_utilization_ratio",
    "gpu_memory_used_bytes",
    "gpu_memory_total_bytes",
)
# What a server does, whichever engine it runs.
SERVER_METRICS = (
    "requests_per_second",
    "latency_mean_ms",
    "queue_mean_ms",
    "pending_requests",
    "failures_per_second",
    "tokens_per_second",
    "cpu_ratio",
    "memory_used_bytes",
    "memory_total_bytes",
)
# What a GPU of a server does; stored as `gpu_<metric>` with the label `gpu`.
GPU_METRICS = ("utilization_ratio", "memory_used_bytes", "memory_total_bytes", "power_watts")

# Streams that other apps own, known here by name alone: what waits in them is part of our health.
LEDGER_STREAM = "inferadmin.usage"
LEDGER_GROUP = "ledger"
GATEWAY_STREAM = "inferadmin.gateway-metrics"


@dataclass(frozen=True, slots=True)
class Topic:
    """What a page watches: everything (`server_id` is `None`), or one server."""

    server_id: int | None

    def __str__(self) -> str:
        return "overview" if self.server_id is None else f"server:{self.server_id}"


OVERVIEW = Topic(server_id=None)


def topic_of(text: str) -> Topic:
    """The topic that `overview` or `server:7` names; raises InvalidRequestError."""
    if text == "overview":
        return OVERVIEW
    word, _colon, number = text.partition(":")
    if word == "server" and number.isascii() and number.isdecimal() and len(number) <= 18:
        return Topic(server_id=int(number))
    message = "a topic is “overview” or “server:<id>”"
    raise InvalidRequestError(f"topic: {message}", fields={"topic": [message]})


def series_name(metric: str, labels: Mapping[str, str]) -> str:
    """Name of a series inside its topic: the metric, or `gpu/<uuid>/<metric>`."""
    gpu = labels.get("gpu")
    return metric if gpu is None else f"gpu/{gpu}/{metric.removeprefix('gpu_')}"

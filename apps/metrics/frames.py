"""What gateway workers report each second, and sums over it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from apps.metrics import histogram
from apps.metrics.histogram import Buckets

# Statuses in which the answer failed; a client that went away is not our failure.
_FAILED = {"error", "partial"}
# For each percentile of a chart: the value's name, the share.
_LATENCIES = (("latency_p50_ms", 0.5), ("latency_p95_ms", 0.95), ("latency_p99_ms", 0.99))


@dataclass(frozen=True, slots=True)
class Row:
    """Requests that ended in one worker's second, of one route, target and status."""

    route: str
    # None: no target was reached.
    server_id: int | None
    model: str
    status: str
    count: int
    input_tokens: int
    output_tokens: int
    latency: Buckets
    first_token: Buckets


@dataclass(frozen=True, slots=True)
class GatewayFrame:
    """One second of one worker; `in_flight` is the number of requests it works on."""

    worker: str
    in_flight: int
    rows: tuple[Row, ...]


@dataclass(slots=True)
class Traffic:
    """Requests summed up, of everything or of one server."""

    count: int = 0
    failed: int = 0
    output_tokens: int = 0
    latency: dict[int, int] = field(default_factory=dict)
    first_token: dict[int, int] = field(default_factory=dict)


def frame_of(raw: bytes) -> GatewayFrame | None:
    """The frame that a worker sent; `None` when it is none, and rows that are none left out."""
    try:
        frame = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(frame, Mapping):
        return None
    rows = frame.get("rows")
    parsed = [_row_of(row) for row in rows] if isinstance(rows, list) else []
    return GatewayFrame(
        worker=str(frame.get("worker", "")),
        in_flight=_whole(frame.get("in_flight")),
        rows=tuple(row for row in parsed if row is not None),
    )


def traffic_of(rows: Iterable[Row]) -> Traffic:
    """Sum over rows."""
    kept = list(rows)
    return Traffic(
        count=sum(row.count for row in kept),
        failed=sum(row.count for row in kept if row.status in _FAILED),
        output_tokens=sum(row.output_tokens for row in kept),
        latency=histogram.merge(row.latency for row in kept),
        first_token=histogram.merge(row.first_token for row in kept),
    )


def overview_values(traffic: Traffic, in_flight: int) -> dict[str, float | None]:
    """One second of everything. Idle is 0 requests a second and no latency."""
    values: dict[str, float | None] = {
        name: _milliseconds(histogram.quantile(traffic.latency, q)) for name, q in _LATENCIES
    }
    return values | {
        "requests_per_second": traffic.count,
        "first_token_p95_ms": _milliseconds(histogram.quantile(traffic.first_token, 0.95)),
        "tokens_per_second": traffic.output_tokens,
        "error_ratio": traffic.failed / traffic.count if traffic.count else None,
        "in_flight": in_flight,
    }


def server_values(traffic: Traffic) -> dict[str, float | None]:
    """One second of a server as its callers saw it, under the names of its topic."""
    return {
        "requests_per_second": traffic.count,
        "failures_per_second": traffic.failed,
        "latency_mean_ms": _milliseconds(histogram.mean(traffic.latency)),
        "tokens_per_second": traffic.output_tokens,
    }


def _row_of(raw: Any) -> Row | None:
    if not isinstance(raw, Mapping):
        return None
    server = str(raw.get("server"))
    return Row(
        route=str(raw.get("route") or ""),
        server_id=int(server) if server.isdecimal() else None,
        model=str(raw.get("model") or ""),
        status=str(raw.get("status") or ""),
        count=_whole(raw.get("count")),
        input_tokens=_whole(raw.get("input_tokens")),
        output_tokens=_whole(raw.get("output_tokens")),
        latency=histogram.from_wire(raw.get("latency")),
        first_token=histogram.from_wire(raw.get("first_token")),
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000

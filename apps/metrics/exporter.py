"""inferadmin's own figures as Prometheus text.

Everything comes from Redis and Postgres, so each web process gives the same page. Totals start at
0 again when Redis was emptied, as counters may.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import redis
from django.db import DatabaseError
from django.db.models import Count
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from apps.fleet.models import Operation, Server
from apps.metrics import gateway_memory
from apps.metrics.gateway_memory import TotalKey
from apps.metrics.health import SystemState
from apps.metrics.histogram import Buckets, middle_seconds, upper_bound_seconds

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Upper bounds in seconds. A bucket of ours counts below a bound when all of it lies below.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


def prometheus_page(state: SystemState) -> bytes:
    """The page; what cannot be known while Redis or Postgres is away is left out."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Page(state))
    return generate_latest(registry)


class _Page(Collector):
    """All families, read when the page is made."""

    def __init__(self, state: SystemState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        yield from _health(self._state)
        if not self._state.redis_error:
            yield from _readable(_gateway, redis.RedisError)
        if not self._state.postgres_error:
            yield from _readable(_fleet, DatabaseError)


def _readable(families: Callable[[], list[Metric]], error: type[Exception]) -> Iterable[Metric]:
    """The families, or none when their source went away since the look at it."""
    try:
        return families()
    except error:
        return []


def _gauge(name: str, help_text: str, labels: Sequence[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"inferadmin_{name}", help_text, labels=labels)


def _health(state: SystemState) -> Iterator[Metric]:
    up = _gauge("up", "1 while the part answers.", ["part"])
    up.add_metric(["postgres"], float(not state.postgres_error))
    up.add_metric(["redis"], float(not state.redis_error))
    yield up
    if state.redis_error:
        return
    age = _gauge("metrics_heartbeat_age_seconds", "Since a telemetry task ran last.", ["job"])
    took = _gauge("metrics_run_seconds", "How long its last run took.", ["job"])
    for job, beat in state.beats.items():
        age.add_metric([job], state.age_seconds(job) or 0.0)
        took.add_metric([job], beat.seconds)
    yield from (age, took)
    for name, help_text, value in (
        ("events", "Usage events not yet in the ledger.", state.ledger.waiting),
        ("pending_events", "Of those, read but not yet written.", state.ledger.pending),
        ("lag_seconds", "Since the oldest of them waits.", state.ledger.oldest_seconds),
    ):
        family = _gauge(f"billing_ledger_{name}", help_text)
        family.add_metric([], value)
        yield family


def _gateway() -> list[Metric]:
    totals = gateway_memory.totals()
    requests = CounterMetricFamily(
        "inferadmin_gateway_requests", "Requests that ended.", labels=["route", "status"]
    )
    tokens = CounterMetricFamily(
        "inferadmin_gateway_tokens", "Tokens in and out.", labels=["route", "direction"]
    )
    for (name, *labels), value in sorted(totals.items()):
        if name == "requests":
            requests.add_metric(labels, value)
        elif name == "tokens":
            tokens.add_metric(labels, value)
    now = gateway_memory.now()
    in_flight = _gauge("gateway_in_flight", "Requests being worked on.")
    if now is not None:
        in_flight.add_metric([], now.overview.get("in_flight") or 0)
    return [
        requests,
        tokens,
        in_flight,
        _histogram("latency", "Seconds to the end of the answer.", totals),
        _histogram("first_token", "Seconds to the first token.", totals),
    ]


def _histogram(name: str, help_text: str, totals: dict[TotalKey, int]) -> Metric:
    family = HistogramMetricFamily(
        f"inferadmin_gateway_{name}_seconds", help_text, labels=["route"]
    )
    by_route: dict[str, dict[int, int]] = {}
    for key, count in totals.items():
        if key[0] == name:
            by_route.setdefault(key[1], {})[int(key[2])] = count
    for route, buckets in sorted(by_route.items()):
        total = sum(middle_seconds(bucket) * count for bucket, count in buckets.items())
        family.add_metric([route], _cumulative(buckets), sum_value=total)
    return family


def _cumulative(buckets: Buckets) -> list[tuple[str, float]]:
    below = [
        (
            str(float(bound)),
            float(sum(n for bucket, n in buckets.items() if upper_bound_seconds(bucket) <= bound)),
        )
        for bound in _BOUNDS
    ]
    return [*below, ("+Inf", float(sum(buckets.values())))]


def _fleet() -> list[Metric]:
    families: list[Metric] = []
    for name, help_text, rows, states in (
        ("fleet_servers", "Enabled servers.", Server.objects.filter(is_enabled=True), Server.State),
        ("fleet_operations", "Loads, unloads, reloads.", Operation.objects.all(), Operation.State),
    ):
        counts = dict(rows.order_by().values_list("state").annotate(Count("pk")))
        family = _gauge(name, f"{help_text} By state.", ["state"])
        for state in states.values:
            family.add_metric([state], counts.get(state, 0))
        families.append(family)
    return families

"""From two readings of a server to rates and means."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.metrics.readings import ModelKey, Numbers

Counters = Mapping[ModelKey, Numbers]

# Between two readings closer than this a rate is noise, further apart it says nothing about now.
SHORTEST_SECONDS = 0.2
LONGEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What a model or server did between two looks; `None` where that is not known.

    Means are over the requests that ended in between; without one they are `None`, and the rate 0.
    """

    requests_per_second: float | None = None
    failures_per_second: float | None = None
    latency_mean_ms: float | None = None
    queue_mean_ms: float | None = None
    pending_requests: float | None = None
    tokens_per_second: float | None = None
    # Requests that one execution handled together.
    batch_mean: float | None = None

    def known(self) -> dict[str, float]:
        """The figures that have a value."""
        pairs = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: value for name, value in pairs if value is not None}

    @classmethod
    def from_known(cls, known: Mapping[str, Any]) -> "Figures":
        """The reverse of `known`; names of another release are left out."""
        return cls(**{name: known[name] for name in cls.__slots__ if name in known})


def increases(before: Counters, now: Counters) -> dict[ModelKey, Numbers]:
    """By how much each counter grew; only what was there both times.

    One counter that is lower tells that the model was unloaded or the server restarted in
    between, and then nothing is known about any counter of that model and version.
    """
    grown: dict[ModelKey, Numbers] = {}
    for key, counters in now.items():
        old = before.get(key, {})
        increase = {name: value - old[name] for name, value in counters.items() if name in old}
        if all(value >= 0 for value in increase.values()):
            grown[key] = increase
    return grown


def summed(parts: Iterable[Numbers]) -> Numbers:
    """Sum by name; a name that no part has is missing."""
    total: Numbers = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


def figures_of(increase: Numbers, gauges: Numbers, seconds: float) -> Figures:
    """Rates and means of one model, or of a server's sums, over `seconds`."""
    is_rate = SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS
    grown = increase if is_rate else {}
    succeeded, failed = grown.get("succeeded"), grown.get("failed")
    return Figures(
        requests_per_second=_rate(_sum(succeeded, failed), seconds),
        failures_per_second=_rate(failed, seconds),
        latency_mean_ms=_mean(grown, "latency_seconds", "latency_count", 1000),
        queue_mean_ms=_mean(grown, "queue_seconds", "queue_count", 1000),
        pending_requests=gauges.get("pending"),
        tokens_per_second=_rate(grown.get("output_tokens"), seconds),
        batch_mean=_mean(grown, "inferences", "executions", 1),
    )


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None else first + (second or 0.0)


def _rate(increase: float | None, seconds: float) -> float | None:
    return None if increase is None else increase / seconds


def _mean(grown: Numbers, total: str, count: str, scale: float) -> float | None:
    if total not in grown or not grown.get(count):
        return None
    return grown[total] / grown[count] * scale

"""Values on their way into the table of samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """What a series is known by; `labels` are pairs in the order of their names."""

    metric: str
    server_id: int | None
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a series; `at` is aware."""

    key: SeriesKey
    at: datetime
    value: float


def points_of(
    values: Mapping[str, float | None],
    *,
    at: datetime,
    server_id: int | None,
    labels: tuple[tuple[str, str], ...] = (),
) -> list[Point]:
    """A point for each value that is known, the names being metrics."""
    return [
        Point(SeriesKey(metric, server_id, labels), at, value)
        for metric, value in values.items()
        if value is not None
    ]

"""What a live chart shows: lines of one topic of the live socket."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its series in the topic, and a colour token (p50, p95, p99, requests, load …)."""

    series: str
    label: str
    color: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A card with a chart; `templates/components/chart.html` draws it.

    `unit`: ms, ratio (0 to 1), bytes, per_second, count or watts. An optional chart stays hidden
    until its topic reports one of its series.
    """

    title: str
    topic: str
    unit: str
    lines: Sequence[Line]
    note: str = ""
    is_optional: bool = False

"""What happened: samples of a topic as aligned arrays for charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from time import time

from django.conf import settings
from django.db import connection

from apps.core.errors import NotFoundError
from apps.fleet.models import Server
from apps.metrics.events import Snapshot
from apps.metrics.models import Series
from apps.metrics.names import GPU_METRICS, OVERVIEW_METRICS, SERVER_METRICS, Topic, series_name

DEFAULT_MINUTES = 15
MAX_MINUTES = 31 * 24 * 60
# Points that a chart gets at most: more than a screen shows, little enough to send at once.
_MAX_POINTS = 450
# Newest slots that may still be empty because their second is not measured yet.
_UNFINISHED_SLOTS = 3

_SAMPLES_BY_SLOT = """
SELECT series_id, floor(extract(epoch FROM at) / %(step)s)::bigint AS slot, avg(value)
FROM metrics_sample
WHERE series_id = ANY(%(series)s)
  AND at >= to_timestamp(%(start)s) AND at < to_timestamp(%(end)s)
GROUP BY series_id, slot
"""


@dataclass(frozen=True, slots=True)
class _Slots:
    """Equal parts of a stretch of time; `first` and `count` are in steps since 1970."""

    step: int
    first: int
    count: int

    @property
    def start(self) -> int:
        return self.first * self.step

    @property
    def end(self) -> int:
        return (self.first + self.count) * self.step

    def times(self) -> list[int]:
        return [(self.first + index) * self.step for index in range(self.count)]


def history(topic: Topic, minutes: int = DEFAULT_MINUTES) -> Snapshot:
    """The last `minutes` of a topic, at most 450 points; a series without a sample is missing.

    A longer stretch has wider steps, and a value is then the mean over its step (also for
    percentiles: the mean of the percentiles of its seconds). Raises NotFoundError for a server
    that does not exist.
    """
    if topic.server_id is not None and not Server.objects.filter(pk=topic.server_id).exists():
        raise NotFoundError(f"there is no server {topic.server_id}")
    slots = _slots(topic, minutes)
    names = _series_of(topic)
    lines = _lines(slots, names)
    times = slots.times()
    _drop_unfinished(times, list(lines.values()))
    return Snapshot(type="snapshot", topic=str(topic), step=slots.step, t=times, series=lines)


def _slots(topic: Topic, minutes: int) -> _Slots:
    finest = 1 if topic.server_id is None else 2 * settings.SWEEP_INTERVAL_SECONDS
    step = max(finest, ceil(minutes * 60 / _MAX_POINTS))
    count = ceil(minutes * 60 / step)
    return _Slots(step=step, first=int(time()) // step - count + 1, count=count)


def _series_of(topic: Topic) -> dict[int, str]:
    """Name under which the topic shows each of its series, by the series' id."""
    if topic.server_id is None:
        rows = Series.objects.filter(server=None, metric__in=OVERVIEW_METRICS)
    else:
        metrics = [*SERVER_METRICS, *(f"gpu_{metric}" for metric in GPU_METRICS)]
        rows = Series.objects.filter(server_id=topic.server_id, metric__in=metrics)
    return {
        series.pk: series_name(series.metric, series.labels)
        for series in rows.exclude(labels__has_key="model")
    }


def _lines(slots: _Slots, names: dict[int, str]) -> dict[str, list[float | None]]:
    parameters: dict[str, int | list[int]] = {
        "step": slots.step,
        "series": list(names),
        "start": slots.start,
        "end": slots.end,
    }
    lines: dict[str, list[float | None]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLES_BY_SLOT, parameters)
        for series_id, slot, value in cursor:
            line = lines.setdefault(names[series_id], [None] * slots.count)
            line[slot - slots.first] = value
    return lines


def _drop_unfinished(times: list[int], lines: Sequence[list[float | None]]) -> None:
    """Take off the newest slots that hold nothing yet, so that live ticks join without a gap."""
    for _attempt in range(_UNFINISHED_SLOTS):
        if not times or any(line[-1] is not None for line in lines):
            return
        times.pop()
        for line in lines:
            line.pop()

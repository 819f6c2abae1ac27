"""Folding the gateway's frames: each past second becomes samples, totals and live ticks."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from time import time

import structlog
from django.db import DatabaseError

from apps.core import live
from apps.fleet.models import Server
from apps.metrics import gateway_memory, scrape_memory
from apps.metrics.events import Tick, TickEvent, group_of
from apps.metrics.frames import GatewayFrame, Row, overview_values, server_values, traffic_of
from apps.metrics.gateway_memory import Now, Progress
from apps.metrics.locks import one_at_a_time
from apps.metrics.machines import machine_totals
from apps.metrics.names import OVERVIEW, Topic
from apps.metrics.points import Point, points_of
from apps.metrics.pulse import beat
from apps.metrics.services.samples import samples_write
from apps.metrics.watchers import watched

log = structlog.get_logger(__name__)

_LOCK_SECONDS = 10
# After a pause seconds older than this still count in the totals, but are not drawn.
_DRAWN_SECONDS = 60
# Ticks of more seconds than this come too late to be live.
_TICKED_SECONDS = 3
# How long a worker's last word on its requests in flight holds.
_IN_FLIGHT_SECONDS = 3
# How long a server's metrics page speaks for now.
ENGINE_SECONDS = 10

Values = Mapping[str, float | None]


def gateway_fold() -> int:
    """Fold the seconds that are past and give their number; 0 when another run is on.

    A second is folded once, whichever worker dies when. When Postgres does not take the samples,
    ticks and totals go on. Raises RedisError.
    """
    with one_at_a_time("fold", seconds=_LOCK_SECONDS) as is_ours:
        if not is_ours:
            return 0
        started = time()
        folded = _fold()
        beat("fold", seconds=time() - started)
    return folded


def _fold() -> int:
    end = gateway_memory.clock()
    before = gateway_memory.progress() or Progress(second=end - 2)
    first = before.second + 1
    if first >= end:
        return 0
    frames = gateway_memory.frames_between(first, end)
    engines = _engine_values()
    in_flight = dict(before.in_flight)
    seconds = []
    for second in range(max(first, end - _DRAWN_SECONDS), end):
        in_flight = _in_flight_at(second, in_flight, frames.get(second, []))
        seconds.append(_second(second, frames.get(second, []), in_flight, engines))
    rows = [row for arrived in frames.values() for frame in arrived for row in frame.rows]
    _keep_samples(seconds, engines)
    gateway_memory.keep(Progress(end - 1, in_flight), rows, seconds[-1])
    live.push(_ticks(seconds[-_TICKED_SECONDS:]))
    return len(seconds)


def _engine_values() -> dict[int, Values]:
    """What metrics pages say now, by server; {} for a server that says nothing."""
    fresh = time() - ENGINE_SECONDS
    values: dict[int, Values] = {
        pk: current.values if current.at >= fresh else {}
        for pk, current in scrape_memory.currents().items()
    }
    try:
        enabled = Server.objects.filter(is_enabled=True).values_list("pk", flat=True)
        return {pk: values.get(pk, {}) for pk in enabled}
    except DatabaseError:
        return values


def _in_flight_at(
    second: int, known: Mapping[str, tuple[int, int]], frames: Iterable[GatewayFrame]
) -> dict[str, tuple[int, int]]:
    """By worker: when it spoke last and what it said, without those that fell silent."""
    latest = dict(known) | {frame.worker: (second, frame.in_flight) for frame in frames}
    return {
        worker: word for worker, word in latest.items() if second - word[0] <= _IN_FLIGHT_SECONDS
    }


def _second(
    second: int,
    frames: Iterable[GatewayFrame],
    in_flight: Mapping[str, tuple[int, int]],
    engines: Mapping[int, Values],
) -> Now:
    rows = [row for frame in frames for row in frame.rows]
    overview = overview_values(traffic_of(rows), sum(count for _at, count in in_flight.values()))
    return Now(
        second=second,
        overview=overview | machine_totals(engines.values()),
        servers={pk: _server(pk, rows, values) for pk, values in engines.items()},
    )


def _server(server_id: int, rows: Iterable[Row], engine: Values) -> Values:
    """As its callers saw it, and above that what the engine itself reports."""
    own = [row for row in rows if row.server_id == server_id]
    return {**server_values(traffic_of(own)), **engine}


def _keep_samples(seconds: Iterable[Now], engines: Mapping[int, Values]) -> None:
    """Write the overview, and of servers what their sweep does not write already."""
    try:
        samples_write(points=_points(seconds, engines))
    except DatabaseError as exc:
        log.warning("metrics.samples_lost", error=type(exc).__name__)


def _points(seconds: Iterable[Now], engines: Mapping[int, Values]) -> list[Point]:
    points: list[Point] = []
    for now in seconds:
        at = datetime.fromtimestamp(now.second, UTC)
        points += points_of(now.overview, at=at, server_id=None)
        for pk, values in now.servers.items():
            seen = {name: value for name, value in values.items() if name not in engines[pk]}
            points += points_of(seen, at=at, server_id=pk)
    return points


def _ticks(seconds: Iterable[Now]) -> list[tuple[str, TickEvent]]:
    """A tick a second for each topic that somebody watches."""
    wanted = watched()
    return [
        (group_of(topic), _tick(topic, now.second, values))
        for now in seconds
        for topic, values in _topics(now)
        if str(topic) in wanted
    ]


def _topics(now: Now) -> list[tuple[Topic, Values]]:
    return [(OVERVIEW, now.overview), *((Topic(pk), values) for pk, values in now.servers.items())]


def _tick(topic: Topic, second: int, values: Values) -> TickEvent:
    tick = Tick(type="tick", topic=str(topic), t=second, values=dict(values))
    return TickEvent(type="live.tick", tick=tick)

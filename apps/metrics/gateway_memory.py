"""What folding the gateway's frames leaves in Redis: how far it is, running totals, what is now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from apps.core.redis import connection
from apps.metrics.frames import GatewayFrame, Row, frame_of
from apps.metrics.names import GATEWAY_STREAM

_PROGRESS = "inferadmin.metrics.fold"
_TOTALS = "inferadmin.metrics.totals"
_NOW = "inferadmin.metrics.now"
# Nobody is shown figures that are older than this.
NOW_SECONDS = 15

# A total's name, then its labels: ("requests", route, status), ("latency", route, bucket) …
TotalKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """`second`: the last that was folded (seconds since 1970). `in_flight`: by worker, with the
    second in which it said so."""

    second: int
    in_flight: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Now:
    """The last folded second: values of the overview and of every server, by its id."""

    second: int
    overview: Mapping[str, float | None]
    servers: Mapping[int, Mapping[str, float | None]]


def clock() -> int:
    """The second that Redis' clock is in; its streams are stamped with the same clock."""
    seconds, _microseconds = connection().time()
    return seconds


def progress() -> Progress | None:
    """How far the folding is; `None` at the very first run."""
    raw = cast(bytes | None, connection().get(_PROGRESS))
    if raw is None:
        return None
    second, in_flight = orjson.loads(raw)
    return Progress(second, {worker: (at, count) for worker, (at, count) in in_flight.items()})


def frames_between(first: int, end: int) -> dict[int, list[GatewayFrame]]:
    """Frames by the second of their arrival, from `first` up to before `end`.

    Arrival and not the worker's own clock decides, so that a second that is past is complete.
    """
    entries = cast(
        list[tuple[bytes, dict[bytes, bytes]]],
        connection().xrange(GATEWAY_STREAM, min=f"{first}000", max=f"{end - 1}999"),
    )
    frames: dict[int, list[GatewayFrame]] = {}
    for entry_id, fields in entries:
        frame = frame_of(fields.get(b"frame", b""))
        if frame is not None:
            frames.setdefault(int(entry_id.split(b"-")[0]) // 1000, []).append(frame)
    return frames


def keep(progress: Progress, rows: Iterable[Row], now: Now) -> None:
    """Store in one transaction, so that a second is counted once whenever a worker dies."""
    pipe = connection().pipeline(transaction=True)
    for key, increase in increases_of(rows).items():
        if increase:
            pipe.hincrby(_TOTALS, orjson.dumps(key).decode(), increase)
    servers = {str(pk): values for pk, values in now.servers.items()}
    pipe.set(_NOW, orjson.dumps([now.second, now.overview, servers]), ex=NOW_SECONDS)
    pipe.set(_PROGRESS, orjson.dumps([progress.second, progress.in_flight]))
    pipe.execute()


def increases_of(rows: Iterable[Row]) -> dict[TotalKey, int]:
    """What the rows add to each total."""
    totals: dict[TotalKey, int] = {}

    def add(key: TotalKey, value: int) -> None:
        totals[key] = totals.get(key, 0) + value

    for row in rows:
        add(("requests", row.route, row.status), row.count)
        add(("tokens", row.route, "input"), row.input_tokens)
        add(("tokens", row.route, "output"), row.output_tokens)
        for name, buckets in (("latency", row.latency), ("first_token", row.first_token)):
            for bucket, count in buckets.items():
                add((name, row.route, str(bucket)), count)
    return totals


def totals() -> dict[TotalKey, int]:
    """Everything counted since Redis was emptied last."""
    raw = cast(dict[bytes, bytes], connection().hgetall(_TOTALS))
    return {tuple(orjson.loads(key)): int(value) for key, value in raw.items()}


def now() -> Now | None:
    """The last folded second; `None` when nothing was folded within NOW_SECONDS."""
    raw = cast(bytes | None, connection().get(_NOW))
    if raw is None:
        return None
    second, overview, servers = cast(tuple[int, Any, Any], orjson.loads(raw))
    return Now(second, overview, {int(pk): values for pk, values in servers.items()})

"""What one sweep leaves for the next, and for pages: two hashes in Redis, one field a server.

The sweep is a task, so two sweeps in a row may run in two processes: counters kept in a process
would be compared with old ones, or with none. In Redis the lock that lets one sweep run at a time
also guards them, and losing them costs one step without rates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from apps.core.redis import connection
from apps.metrics.figures import Counters, Figures
from apps.metrics.readings import ModelKey, Numbers

_MEMORY = "inferadmin.metrics.memory"
_CURRENT = "inferadmin.metrics.current"


@dataclass(frozen=True, slots=True)
class Totals:
    """Counters of a server at one time (seconds since 1970)."""

    at: float = 0.0
    counters: Counters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """What the next sweep needs to know of a server."""

    last: Totals = field(default_factory=Totals)
    # Totals when samples of single models were written last.
    model_base: Totals = field(default_factory=Totals)
    failures: int = 0
    # Not read again before; seconds since 1970.
    next_at: float = 0.0
    gpus_noted_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Current:
    """What a server's metrics page said last.

    `values` has the names of topic `server:<id>`: missing where the engine does not report it,
    `None` where it does but nothing is known now. `error` is the code of a failed scrape after
    `at`, "" while all is well; a failed scrape says nothing about the server itself.
    """

    at: float = 0.0
    scrape_seconds: float = 0.0
    error: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    models: Mapping[ModelKey, Figures] = field(default_factory=dict)


def memories() -> dict[int, Memory]:
    """By server; what cannot be read is left out and starts anew."""
    return {pk: _memory_from(raw) for pk, raw in _fields(_MEMORY).items()}


def currents() -> dict[int, Current]:
    """By server, also those that were scraped long ago."""
    return {pk: _current_from(raw) for pk, raw in _fields(_CURRENT).items()}


def current_of(server_id: int) -> Current | None:
    """One server's; `None` when it was never scraped."""
    raw = cast(bytes | None, connection().hget(_CURRENT, str(server_id)))
    return None if raw is None else _current_from(orjson.loads(raw))


def remember(memory: Mapping[int, Memory], current: Mapping[int, Current]) -> None:
    """Replace everything that is kept, in one transaction; servers that are not given go."""
    pipe = connection().pipeline(transaction=True)
    _replace(pipe, _MEMORY, {pk: _memory_to(item) for pk, item in memory.items()})
    _replace(pipe, _CURRENT, {pk: _current_to(item) for pk, item in current.items()})
    pipe.execute()


def _replace(pipe: Any, key: str, fields: Mapping[int, bytes]) -> None:
    pipe.delete(key)
    if fields:
        pipe.hset(key, mapping=dict(fields))


def _fields(key: str) -> dict[int, Any]:
    raw = cast(dict[bytes, bytes], connection().hgetall(key))
    return {int(field): orjson.loads(value) for field, value in raw.items()}


def _pairs_to(counters: Mapping[ModelKey, Any]) -> list[list[Any]]:
    return [[model, version, numbers] for (model, version), numbers in counters.items()]


def _pairs_from(raw: Iterable[list[Any]]) -> dict[ModelKey, Numbers]:
    return {(model, version): numbers for model, version, numbers in raw}


def _totals_from(raw: list[Any]) -> Totals:
    return Totals(at=raw[0], counters=_pairs_from(raw[1]))


def _memory_to(memory: Memory) -> bytes:
    return orjson.dumps(
        {
            "last": [memory.last.at, _pairs_to(memory.last.counters)],
            "model_base": [memory.model_base.at, _pairs_to(memory.model_base.counters)],
            "failures": memory.failures,
            "next_at": memory.next_at,
            "gpus_noted_at": memory.gpus_noted_at,
        }
    )


def _memory_from(raw: dict[str, Any]) -> Memory:
    last, model_base = _totals_from(raw.pop("last")), _totals_from(raw.pop("model_base"))
    return Memory(last=last, model_base=model_base, **raw)


def _current_to(current: Current) -> bytes:
    return orjson.dumps(
        {
            "at": current.at,
            "scrape_seconds": current.scrape_seconds,
            "error": current.error,
            "values": dict(current.values),
            "models": _pairs_to({key: item.known() for key, item in current.models.items()}),
        }
    )


def _current_from(raw: dict[str, Any]) -> Current:
    models = _pairs_from(raw.pop("models"))
    return Current(**raw, models={key: Figures.from_known(item) for key, item in models.items()})

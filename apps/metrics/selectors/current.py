"""What is going on now, for pages and other apps; empty while telemetry or Redis is away."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import time
from typing import TypeVar

import redis

from apps.metrics import gateway_memory, scrape_memory
from apps.metrics.figures import Figures

T = TypeVar("T")

OUTAGE_SECONDS = 5.0
# A metrics page that was read longer ago no longer speaks for now.
FRESH_SECONDS = 15

# Name of a model on its server, and its version where the engine tells one.
Placed = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """A server now. `values` has the names of topic `server:<id>`.

    `scrape_error` is the code of what is wrong with its metrics page, "" when nothing is or when
    it has none; it does not mean that the server is down. `scraped_at`: seconds since 1970, 0 for
    never.
    """

    figures: Figures = field(default_factory=Figures)
    values: Mapping[str, float | None] = field(default_factory=dict)
    scraped_at: float = 0.0
    scrape_error: str = ""


def overview_now() -> dict[str, float | None]:
    """Values of topic `overview` in the last second; {} when nothing is known."""
    now = _asked(gateway_memory.now)
    return dict(now.overview) if now else {}


def server_figures() -> dict[int, ServerFigures]:
    """Every enabled server that telemetry knows, by its id."""
    now = _asked(gateway_memory.now)
    currents = _asked(scrape_memory.currents) or {}
    values = now.servers if now else {}
    return {
        pk: ServerFigures(
            figures=Figures.from_known(values.get(pk, {})),
            values=values.get(pk, {}),
            scraped_at=currents[pk].at if pk in currents else 0.0,
            scrape_error=currents[pk].error if pk in currents else "",
        )
        for pk in sorted({*values, *currents})
    }


def placement_figures(server_id: int) -> dict[Placed, Figures]:
    """What each model and version on a server does now, as its engine reports it."""
    current = _asked(partial(scrape_memory.current_of, server_id))
    if current is None or current.at < time() - FRESH_SECONDS:
        return {}
    return {
        (model, int(version) if version.isdecimal() else None): figures
        for (model, version), figures in current.models.items()
    }


@dataclass(slots=True)
class _Outage:
    """Until when Redis is not asked again (seconds since 1970)."""

    until: float = 0.0


_outage = _Outage()


def _asked(question: Callable[[], T]) -> T | None:
    """The answer of Redis; `None` while it is away.

    Waiting for a Redis that hangs takes seconds, so one page in OUTAGE_SECONDS does it for all.
    """
    if time() < _outage.until:
        return None
    try:
        return question()
    except redis.RedisError:
        _outage.until = time() + OUTAGE_SECONDS
        return None

"""What is going on now, for pages and other apps; empty while telemetry or Redis is away."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import time

import redis

from apps.metrics import gateway_memory, scrape_memory
from apps.metrics.figures import Figures

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
    try:
        now = gateway_memory.now()
    except redis.RedisError:
        return {}
    return dict(now.overview) if now else {}


def server_figures() -> dict[int, ServerFigures]:
    """Every enabled server that telemetry knows, by its id."""
    try:
        now, currents = gateway_memory.now(), scrape_memory.currents()
    except redis.RedisError:
        return {}
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
    try:
        current = scrape_memory.currents().get(server_id)
    except redis.RedisError:
        return {}
    if current is None or current.at < time() - FRESH_SECONDS:
        return {}
    return {
        (model, int(version) if version.isdecimal() else None): figures
        for (model, version), figures in current.models.items()
    }

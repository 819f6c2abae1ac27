"""What one scrape makes of a server: for the next sweep, for pages, and for charts."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import structlog

from apps.core.errors import UpstreamProtocolError
from apps.metrics.figures import Figures, figures_of, increases, summed
from apps.metrics.points import Point, points_of
from apps.metrics.readings import ModelKey, Numbers, Reading, reading_of
from apps.metrics.scrape_memory import Current, Memory, Totals
from apps.metrics.scraping import Scrape

log = structlog.get_logger(__name__)

# Samples of single models are written this often: they are many.
MODEL_STEP_SECONDS = 10.0
GPU_STEP_SECONDS = 60.0
MAX_PAUSE_SECONDS = 30.0
# Which counter or gauge of an engine makes a figure known at all.
_REPORTED_BY = {
    "requests_per_second": "succeeded",
    "failures_per_second": "failed",
    "latency_mean_ms": "latency_count",
    "queue_mean_ms": "queue_count",
    "tokens_per_second": "output_tokens",
    "pending_requests": "pending",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A server after a scrape. `gpus` holds GPUs (by uuid) only when it is time to note them."""

    memory: Memory
    current: Current
    points: list[Point] = field(default_factory=list)
    gpus: dict[str, Numbers] = field(default_factory=dict)


def outcome_of(scrape: Scrape, memory: Memory, current: Current) -> Outcome:
    """Compare a scrape with what was known before it."""
    if scrape.error:
        return _failure(scrape, scrape.error, memory, current)
    try:
        reading = reading_of(scrape.text)
    except UpstreamProtocolError as exc:
        return _failure(scrape, exc.code, memory, current)
    return _success(scrape, reading, memory, current)


def _failure(scrape: Scrape, error: str, memory: Memory, current: Current) -> Outcome:
    """Wait 2, 4, 8 … seconds; old values stay until they are too old to show."""
    if error != current.error:
        log.warning("metrics.scrape_failed", server_id=scrape.server_id, error=error)
    failures = memory.failures + 1
    pause = min(2.0 ** min(failures, 10), MAX_PAUSE_SECONDS)
    return Outcome(
        memory=replace(memory, failures=failures, next_at=scrape.at + pause),
        current=replace(current, error=error, scrape_seconds=scrape.seconds),
    )


def _success(scrape: Scrape, reading: Reading, memory: Memory, current: Current) -> Outcome:
    if current.error:
        log.info("metrics.scrape_recovered", server_id=scrape.server_id)
    totals = Totals(at=scrape.at, counters=reading.counters)
    values = server_values(memory.last, totals, reading)
    is_model_turn = scrape.at - memory.model_base.at >= MODEL_STEP_SECONDS
    is_gpu_turn = scrape.at - memory.gpus_noted_at >= GPU_STEP_SECONDS
    points = _server_points(scrape, values, reading)
    if is_model_turn:
        points += _model_points(scrape, model_figures(memory.model_base, totals, reading))
    return Outcome(
        memory=Memory(
            last=totals,
            model_base=totals if is_model_turn else memory.model_base,
            gpus_noted_at=scrape.at if is_gpu_turn else memory.gpus_noted_at,
        ),
        current=Current(
            at=scrape.at,
            scrape_seconds=scrape.seconds,
            values=values,
            models=model_figures(memory.last, totals, reading),
        ),
        points=points,
        gpus=reading.gpus if is_gpu_turn else {},
    )


def model_figures(before: Totals, now: Totals, reading: Reading) -> dict[ModelKey, Figures]:
    """Figures of every model and version that the engine names."""
    grown = increases(before.counters, now.counters)
    return {
        key: figures_of(grown.get(key, {}), reading.gauges.get(key, {}), now.at - before.at)
        for key in sorted({*reading.counters, *reading.gauges})
        if key[0]
    }


def server_values(before: Totals, now: Totals, reading: Reading) -> dict[str, float | None]:
    """Values of topic `server:<id>`, GPUs as `gpu/<uuid>/<metric>`.

    A name that the engine does not report is missing; `None` is for now unknown.
    """
    grown = increases(before.counters, now.counters)
    sums = figures_of(
        summed(grown.values()), summed(reading.gauges.values()), now.at - before.at
    ).known()
    reported = {name for numbers in reading.counters.values() for name in numbers}
    reported |= {name for numbers in reading.gauges.values() for name in numbers}
    values: dict[str, float | None] = {
        name: sums.get(name) for name, source in _REPORTED_BY.items() if source in reported
    }
    values |= reading.machine
    for uuid, numbers in reading.gpus.items():
        values |= {f"gpu/{uuid}/{name}": value for name, value in numbers.items()}
    return values


def _server_points(
    scrape: Scrape, values: dict[str, float | None], reading: Reading
) -> list[Point]:
    at = datetime.fromtimestamp(scrape.at, UTC)
    own = {name: value for name, value in values.items() if not name.startswith("gpu/")}
    points = points_of(own, at=at, server_id=scrape.server_id)
    for uuid, numbers in reading.gpus.items():
        named = {f"gpu_{name}": value for name, value in numbers.items()}
        points += points_of(named, at=at, server_id=scrape.server_id, labels=(("gpu", uuid),))
    return points


def _model_points(scrape: Scrape, models: dict[ModelKey, Figures]) -> list[Point]:
    at = datetime.fromtimestamp(scrape.at, UTC)
    return [
        point
        for (model, version), figures in models.items()
        for point in points_of(
            figures.known(),
            at=at,
            server_id=scrape.server_id,
            labels=(("model", model), ("version", version)),
        )
    ]

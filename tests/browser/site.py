"""The console alone under a real ASGI server: seeded data, no workers, no model servers."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg

from inferadmin.embedded.processes import free_port

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 60
_SECRET = "browser-tests-only-" + "x" * 40
PASSWORD = "correct-horse-battery"


@contextmanager
def site_in(var: Path, name: str, *, is_empty: bool) -> Iterator[str]:
    """Address of a console with a database `name` of its own; ended whatever happens.

    `var` holds what `collect_static` has put there.
    """
    environment = _environment(var, name)
    _run(environment, "manage.py", "migrate", "-v0")
    _run(environment, "-m", "tests.browser.seed", *(["--empty"] if is_empty else []))
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "inferadmin.asgi:application", "--port", str(port)]
    with (var / f"{name}.txt").open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, cwd=_ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process, var / f"{name}.txt")
        yield url
    finally:
        process.terminate()
        process.wait(20)


def collect_static(var: Path) -> None:
    """Build scripts and styles as they are in the source now, hashed and compressed."""
    _run(dict(os.environ), "scripts/build_front.py")
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "inferadmin.settings",
        "INFERADMIN_SECRET_KEY": _SECRET,
        "INFERADMIN_VAR_DIR": str(var),
    }
    _run(environment, "manage.py", "collectstatic", "-v0", "--noinput")


def _environment(var: Path, name: str) -> dict[str, str]:
    """A database and a Redis number of its own on the services of the test run."""
    parts = urlsplit(os.environ["INFERADMIN_DATABASE_URL"])
    with psycopg.connect(os.environ["INFERADMIN_DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    redis = os.environ["INFERADMIN_REDIS_URL"].rsplit("/", 1)[0]
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "inferadmin.settings",
        "INFERADMIN_SECRET_KEY": _SECRET,
        "INFERADMIN_DATABASE_URL": urlunsplit(parts._replace(path=f"/{name}")),
        "INFERADMIN_REDIS_URL": f"{redis}/{3 if name.endswith('empty') else 2}",
        "INFERADMIN_VAR_DIR": str(var),
        "INFERADMIN_LOG_LEVEL": "WARNING",
    }


def _run(environment: dict[str, str], *arguments: str) -> None:
    result = subprocess.run(  # noqa: S603 - our own commands
        [sys.executable, "-W", "ignore", *arguments],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def _wait(url: str, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        try:
            httpx.get(f"{url}/healthz").raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return

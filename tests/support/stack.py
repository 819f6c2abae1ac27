"""The whole product as `make up` starts it, in a temporary folder."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx
import psutil

from inferadmin.embedded.processes import free_port

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 150
_STOP_SECONDS = 60


Answer = TypeVar("Answer")


def eventually(look: Callable[[], Answer], *, seconds: float = 20, every: float = 0.2) -> Answer:
    """First true answer of `look`; fails with its last one when none comes in time."""
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        time.sleep(every)
    return answer


@dataclass
class Stack:
    """One installation in `folder`; it can be started again after it has ended."""

    folder: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        """What the supervisor has said, over all runs."""
        file = self.folder / "output.txt"
        return file.read_text() if file.exists() else ""

    @property
    def credentials(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.folder / "var" / "credentials.json").read_text())
        return found

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def pid_of(self, name: str) -> int:
        """Process id of a child by its name: `web-1`, `worker`, `triton` …"""
        run = json.loads((self.folder / "var" / "run.json").read_text())
        return next(int(item["pid"]) for item in run if item["name"] == name)

    def launch(self) -> "subprocess.Popen[bytes]":
        """Start the supervisor and return at once."""
        # Neither what the tests' services are, nor the tests' settings that pytest-django names.
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("INFERADMIN_", "DJANGO_SETTINGS_MODULE"))
        }
        environment["INFERADMIN_VAR_DIR"] = str(self.folder / "var")
        environment["INFERADMIN_PORT"] = str(self.port)
        with (self.folder / "output.txt").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "inferadmin.embedded"],
                cwd=_ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def start(self) -> float:
        """Start it and wait until it says that it is ready; gives the seconds that this took."""
        began = time.monotonic()
        before = self.output.count("is ready after") if self._process else 0
        self._process = self.launch()
        while self.output.count("is ready after") == before:
            assert self._process.poll() is None, self.output
            assert time.monotonic() - began < _START_SECONDS, self.output
            time.sleep(0.1)
        return time.monotonic() - began

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it as Ctrl-C does; gives the exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(_STOP_SECONDS)

    def end(self) -> None:
        """Stop it where it still runs."""
        if self._process is not None and self._process.poll() is None:
            self.stop()

    def die(self) -> None:
        """SIGKILL for the supervisor."""
        os.kill(self.pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def kill(self, name: str) -> None:
        """SIGKILL for a child."""
        os.kill(self.pid_of(name), signal.SIGKILL)

    def remnants(self) -> list[str]:
        """Command lines of living processes that work in the folder."""
        found = []
        for process in psutil.process_iter():
            try:
                line = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if str(self.folder) in line:
                found.append(line)
        return found

    def api(self) -> httpx.Client:
        """A client of the REST API, signed in with the management token."""
        return httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {self.credentials['management_token']}"},
            timeout=30,
        )


@contextmanager
def running_stack() -> Iterator[Stack]:
    """A stack that has been started in a folder of its own, and is ended whatever happens."""
    with tempfile.TemporaryDirectory(prefix="inferadmin-stack-") as name:
        # PostgreSQL runs as another user where the tests run as root. pytest's own temporary
        # folders are closed to it, and are closed again by every further run of pytest.
        Path(name).chmod(0o755)
        stack = Stack(Path(name))
        try:
            stack.start()
            yield stack
        finally:
            stack.end()

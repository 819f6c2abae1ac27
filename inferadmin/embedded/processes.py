"""Child processes: started with a log file, tied to our life, stopped politely, then firmly."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.05
_MAX_LOG_BYTES = 10 * 1024 * 1024
_LOG_TAIL_BYTES = 2000


class ChildError(Exception):
    """A child did not start; the message says which, why and where its log is."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to run one child."""

    name: str
    argv: tuple[str, ...]
    # True once it can be used. Called every 50 ms; an OSError counts as "not yet".
    is_ready: Callable[[], bool]
    # Added to our own environment.
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    # Time between the polite signal and SIGKILL.
    stop_seconds: float = 10
    ready_seconds: float = 60
    # Ids of the system user and group to run as; None: our own.
    run_as: tuple[int, int] | None = None
    # File descriptors that the child inherits.
    descriptors: tuple[int, ...] = ()
    # Removes what the child leaves behind; called before each start and after each end.
    tidy: Callable[[], None] = lambda: None


class Child:
    """One running command. It leads a process group of its own, which ends with it."""

    def __init__(self, command: Command, log_folder: Path) -> None:
        self.command = command
        self.log_path = log_folder / f"{command.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id; raises ChildError before `start`."""
        if self._process is None:
            raise ChildError(f"{self.command.name} has not been started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True from `start` until the process has ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; `None` while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Run the command. Call it from a thread that lives as long as the child shall."""
        _rotate(self.log_path)
        self.command.tidy()
        user, group = self.command.run_as or (None, None)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                self.command.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.command.environment},
                user=user,
                group=group,
                extra_groups=None if group is None else [group],
                pass_fds=self.command.descriptors,
                start_new_session=True,
                preexec_fn=_die_with_parent(self.command.stop_signal),
            )

    def wait_until_ready(self) -> None:
        """Return when the command's `is_ready` says so; raises ChildError when it never does."""
        deadline = time.monotonic() + self.command.ready_seconds
        while not _holds(self.command.is_ready):
            if not self.is_running:
                raise ChildError(self._complaint(f"ended with exit code {self.exit_code}"))
            if time.monotonic() > deadline:
                seconds = self.command.ready_seconds
                raise ChildError(self._complaint(f"was not ready after {seconds:.0f} seconds"))
            time.sleep(_POLL_SECONDS)

    def ask_to_stop(self) -> None:
        """Send the polite signal; `stop` waits for its effect."""
        if self._process is not None and self.is_running:
            self._process.send_signal(self.command.stop_signal)

    def stop(self) -> None:
        """End the process and all that it has started. Safe to run twice."""
        if self._process is None:
            return
        self.ask_to_stop()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(self.command.stop_seconds)
        kill_group(self._process.pid)
        self._process.wait()
        self.command.tidy()

    def _complaint(self, what: str) -> str:
        return f"{self.command.name} {what}; its log {self.log_path} ends with:\n{self._tail()}"

    def _tail(self) -> str:
        text = self.log_path.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
        return "\n".join(f"    {line}" for line in text.splitlines()[-12:])


@contextmanager
def running(command: Command, log_folder: Path) -> Iterator[Child]:
    """A child that is ready inside the `with` block and gone after it."""
    child = Child(command, log_folder)
    try:
        child.start()
        child.wait_until_ready()
        yield child
    finally:
        child.stop()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kill_group(leader: int) -> None:
    """SIGKILL for a process group, if there still is one."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _die_with_parent(stop_signal: signal.Signals) -> Callable[[], None] | None:
    """Make the kernel send `stop_signal` when we are gone, even by SIGKILL. Linux only."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def tie() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
        if os.getppid() != parent:  # we died in between
            os.kill(os.getpid(), signal.SIGKILL)

    return tie


def _holds(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:
        return False


def _rotate(log_path: Path) -> None:
    """Keep one old log, so that logs cannot fill the disk."""
    if log_path.exists() and log_path.stat().st_size > _MAX_LOG_BYTES:
        log_path.replace(log_path.with_suffix(".log.1"))

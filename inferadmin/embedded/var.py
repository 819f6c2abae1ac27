"""The folder of one installation (`var/`): who runs in it, its secrets, what a dead run left.

supervisor.lock     held while a supervisor runs
run.json            the children of the last run
secret_key          Django's secret, made once
credentials.json    address, sign-in and keys for the person at the keyboard
log/  postgres/  valkey/  triton/  static/
"""

import fcntl
import json
import os
import secrets
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict

import psutil

from inferadmin.embedded.processes import Child, kill_group

_OWNER_ONLY = 0o600
_STOP_SECONDS = 15
# Two looks at the start of one process may differ by the rounding of the kernel's clock ticks.
_SAME_START_SECONDS = 1.0


class Credentials(TypedDict, total=False):
    """Content of `credentials.json`."""

    url: str
    username: str
    password: str
    api_key: str
    management_token: str


class Remnant(TypedDict):
    """A child as it is written down: `started` tells it from a later process of the same id."""

    name: str
    pid: int
    started: float
    stop_signal: int


class LockedError(Exception):
    """Another supervisor runs in this folder; `pid` is its process id, 0 where unknown."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid} runs already")
        self.pid = pid


@dataclass(frozen=True, slots=True)
class Var:
    """Paths and files of the folder."""

    root: Path

    @property
    def logs(self) -> Path:
        """Log files of the children."""
        return self.root / "log"

    @property
    def _run_file(self) -> Path:
        return self.root / "run.json"

    @property
    def _credentials_file(self) -> Path:
        return self.root / "credentials.json"

    @property
    def _loading_file(self) -> Path:
        return self.root / "loading.json"

    def lock(self) -> IO[str]:
        """Claim the folder for as long as the returned file is open; raises LockedError.

        The kernel gives it back when we die, however we die.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        lock = (self.root / "supervisor.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            with lock:
                lock.seek(0)
                raise LockedError(int(lock.read().strip() or 0)) from exc
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        return lock

    def secret_key(self) -> str:
        """Django's secret; made at the first call."""
        path = self.root / "secret_key"
        if not path.exists():
            write_private(path, secrets.token_urlsafe(48))
        return path.read_text(encoding="utf-8").strip()

    def credentials(self) -> Credentials:
        """What `credentials.json` holds; empty when there is none or it cannot be read."""
        try:
            found: Credentials = json.loads(self._credentials_file.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return Credentials()
        return found

    def save_credentials(self, credentials: Credentials) -> None:
        """Write `credentials.json`, readable by its owner alone."""
        write_private(self._credentials_file, json.dumps(credentials, indent=2) + "\n")

    def loading(self) -> list[str]:
        """Names of the models that Triton has been asked to load at this start."""
        names: list[str] = json.loads(self._loading_file.read_text(encoding="utf-8"))
        return names

    def save_loading(self, names: list[str]) -> None:
        """Tell the supervisor, which is another process, what to wait for."""
        write_private(self._loading_file, json.dumps(names) + "\n")

    def remember(self, children: Iterable[Child]) -> None:
        """Write down what runs, for the next supervisor in case this one is killed."""
        remnants = [_remnant(child) for child in children if child.is_running]
        write_private(self._run_file, json.dumps(remnants, indent=2) + "\n")

    def clean_up(self) -> list[str]:
        """End what an earlier run left behind; returns the names of what had to be ended."""
        try:
            remnants: list[Remnant] = json.loads(self._run_file.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return []
        found = [remnant for remnant in remnants if _members(remnant)]
        for remnant in found:
            _signal(remnant, remnant["stop_signal"])
        _wait(found)
        for remnant in found:
            if _members(remnant):
                kill_group(remnant["pid"])
        self._run_file.unlink()
        return [remnant["name"] for remnant in found]


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; nobody but its owner may read it at any moment."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "w") as file:
        file.write(text)
    draft.replace(path)


def _remnant(child: Child) -> Remnant:
    return Remnant(
        name=child.command.name,
        pid=child.pid,
        started=psutil.Process(child.pid).create_time(),
        stop_signal=int(child.command.stop_signal),
    )


def _members(remnant: Remnant) -> list[psutil.Process]:
    """Living processes of the group that the child led.

    While a group has members the kernel gives its leader's id to nobody else. So a leader with
    another start time means that the whole group is gone and the id belongs to a stranger.
    """
    members = [item for item in psutil.process_iter() if _group_of(item) == remnant["pid"]]
    leader = next((item for item in members if item.pid == remnant["pid"]), None)
    if leader is not None and abs(leader.create_time() - remnant["started"]) > _SAME_START_SECONDS:
        return []
    return members


def _group_of(process: psutil.Process) -> int | None:
    """Process group; `None` for one that has ended or is not ours to ask."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return os.getpgid(process.pid)
    except (psutil.Error, ProcessLookupError, PermissionError):
        return None


def _signal(remnant: Remnant, number: int) -> None:
    try:
        os.kill(remnant["pid"], signal.Signals(number))
    except ProcessLookupError:
        kill_group(remnant["pid"])  # the rest of a group has nobody left to end it in order


def _wait(remnants: list[Remnant]) -> None:
    deadline = time.monotonic() + _STOP_SECONDS
    while any(map(_members, remnants)) and time.monotonic() < deadline:
        time.sleep(0.1)

"""`make up`: starts everything on this machine, keeps it running, ends it.

Order of life: lock the folder, clean up after a killed run, take the port, databases and model
servers, migrate and seed, worker, beat and web, models. It ends in the opposite order. The kernel
ties every child to this process, so that not even SIGKILL leaves one behind for long.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from django.core.exceptions import ImproperlyConfigured

from inferadmin.embedded import models, product, triton
from inferadmin.embedded.keeper import Keeper
from inferadmin.embedded.llamacpp import LlamaCpp
from inferadmin.embedded.plan import Plan
from inferadmin.embedded.postgres import Postgres
from inferadmin.embedded.processes import Child, ChildError, Command
from inferadmin.embedded.progress import say, step
from inferadmin.embedded.triton import Triton
from inferadmin.embedded.valkey import Valkey
from inferadmin.embedded.var import LockedError, Var
from inferadmin.env import env_int, env_str

_TICK_SECONDS = 0.2
_REPOSITORY = Path(__file__).resolve().parents[2]


class StartError(Exception):
    """Starting is not possible; the message says what to do."""


class _Stop(BaseException):
    """A signal asks us to end. Not an Exception: nothing on the way may take it for a failure."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the environment says."""

    folder: Path
    host: str
    port: int
    web_processes: int
    # Empty: the embedded ones.
    database_url: str
    redis_url: str

    @property
    def url(self) -> str:
        """Address for a browser on this machine."""
        host = "127.0.0.1" if self.host in {"", "0.0.0.0"} else self.host  # noqa: S104
        return f"http://{host}:{self.port}"


def options_from_environment() -> Options:
    """Options from `INFERADMIN_…`; raises ImproperlyConfigured naming what is wrong."""
    return Options(
        folder=Path(env_str("VAR_DIR", str(_REPOSITORY / "var"))).resolve(),
        host=env_str("HOST", "127.0.0.1"),
        port=env_int("PORT", 8080),
        web_processes=env_int("WEB_PROCESSES", 1),
        database_url=env_str("DATABASE_URL", ""),
        redis_url=env_str("REDIS_URL", ""),
    )


def main() -> int:
    """Run until a signal ends it. Exit code 0 after a wanted end, 1 after a failed start."""
    try:
        options = options_from_environment()
        _catch_signals()
        with _claimed(Var(options.folder)) as var:
            Supervisor(options, var).run()
    except (StartError, ChildError, ImproperlyConfigured) as exc:
        say(f"\ninferadmin did not start: {exc}")
        return 1
    except _Stop:
        return 0
    return 0


class Supervisor:
    """One run of `make up`."""

    def __init__(self, options: Options, var: Var) -> None:
        self.options = options
        self.var = var
        self.keeper = Keeper(say=_say_with_time, changed=self._remember)
        self.triton: Triton | None = None

    def run(self) -> None:
        """Start all, then keep it running until a signal comes; ends all in any case."""
        began = time.monotonic()
        try:
            with _listening(self.options) as listener:
                self._start(listener)
                self._welcome(time.monotonic() - began)
                while True:
                    self.keeper.tick()
                    time.sleep(_TICK_SECONDS)
        finally:
            self._end()

    def _start(self, listener: socket.socket) -> None:
        say("inferadmin: starting everything on this machine")
        plan = self._start_engines()
        os.environ["INFERADMIN_VAR_DIR"] = str(self.var.root)
        os.environ.setdefault("INFERADMIN_SECRET_KEY", self.var.secret_key())
        _prepare(plan)
        with step("Web, worker and clock"):
            self._keep(product.worker())
            self._keep(product.beat(str(self.var.root / "celerybeat-schedule")))
            web = [
                self._keep(product.web(number, descriptor=listener.fileno(), url=self.options.url))
                for number in range(1, self.options.web_processes + 1)
            ]
            for child in web:
                child.wait_until_ready()
        self._wait_for_models()

    def _start_engines(self) -> Plan:
        """Databases and model servers; the slow ones come up while the fast ones are awaited."""
        obstacle = triton.obstacle()
        llama_cpp = LlamaCpp()
        if obstacle is None:
            self.triton = Triton(
                repository=self.var.root / "triton" / "repository",
                backends=self.var.root / "triton" / "backends",
            )
            triton.copy_examples(self.triton.repository)
            self._keep(self.triton.command())
        model_servers = [*self.keeper.children, self._keep(llama_cpp.command())]
        self._start_databases()
        for child in model_servers:
            with step(_TITLES[child.command.name]):
                child.wait_until_ready()
        if obstacle is not None:
            say(f"  Triton is left out: {obstacle}")
        return Plan.of(
            url=self.options.url,
            folder=self.var.root,
            triton=self.triton,
            obstacle=obstacle,
            llama=llama_cpp,
        )

    def _start_databases(self) -> None:
        if not self.options.database_url:
            postgres = Postgres(self.var.root / "postgres")
            with step("PostgreSQL"):
                postgres.create()
                self._keep(postgres.command()).wait_until_ready()
                postgres.create_database()
            os.environ["INFERADMIN_DATABASE_URL"] = postgres.url
        if not self.options.redis_url:
            valkey = Valkey(self.var.root / "valkey")
            with step("Valkey"):
                self._keep(valkey.command()).wait_until_ready()
            os.environ["INFERADMIN_REDIS_URL"] = valkey.url

    def _wait_for_models(self) -> None:
        """Give the models time to load: the worker does that, through Triton's API."""
        if self.triton is None:
            return
        with step("Models on Triton"):
            missing = models.wait_until_ready(
                self.triton, self.var.loading(), tick=self.keeper.tick
            )
        if missing:
            say(f"  Not ready yet: {', '.join(missing)}; the console shows why")

    def _keep(self, command: Command) -> Child:
        child = Child(command, self.var.logs)
        self.keeper.start(child)
        return child

    def _remember(self) -> None:
        self.var.remember(self.keeper.children)

    def _end(self) -> None:
        if not self.keeper.children:
            return
        say("\ninferadmin: stopping")
        web = [child.command.name for child in self.keeper.children if "web" in child.command.name]
        self.keeper.stop([*web, "worker", "beat"], ["triton", "llamacpp"])
        self._remember()
        say("inferadmin: stopped")

    def _welcome(self, seconds: float) -> None:
        found = self.var.credentials()
        say(f"\ninferadmin is ready after {seconds:.0f} s\n")
        say(f"  Console    {found['url']}")
        say(f"  Sign in    {found['username']} / {found['password']}")
        say(f"  Secrets    {self.var.root / 'credentials.json'}\n")
        say(f"  curl -N {found['url']}/v1/chat/completions \\")
        say(f"    -H 'Authorization: Bearer {found['api_key']}' \\")
        say(f"    -H 'Content-Type: application/json' -d '{_EXAMPLE}'\n")
        say("  Ctrl-C ends everything.")


_TITLES = {"triton": "Triton Inference Server", "llamacpp": "llama.cpp"}
_EXAMPLE = (
    '{"model": "smollm2", "stream": true, '
    '"messages": [{"role": "user", "content": "What is a cat?"}]}'
)


def _prepare(plan: Plan) -> None:
    """Migrate, gather static files and seed, in a process of its own: Django stays out of ours."""
    command = [sys.executable, "-m", "inferadmin.embedded.prepare"]
    try:
        subprocess.run(command, input=plan.to_json(), check=True)  # noqa: S603
    except subprocess.CalledProcessError as exc:
        raise StartError("preparing the database failed; the lines above say why") from exc


@contextmanager
def _claimed(var: Var) -> Iterator[Var]:
    """The folder, ours alone, and clean."""
    try:
        lock = var.lock()
    except LockedError as exc:
        raise StartError(
            f"it runs already in {var.root} (process {exc.pid}). Open "
            f"{var.credentials().get('url', 'its address')}, or end it first: kill {exc.pid}"
        ) from exc
    with lock:
        ended = var.clean_up()
        if ended:
            say(f"inferadmin: an earlier run was killed; ended what it left: {', '.join(ended)}")
        yield var


@contextmanager
def _listening(options: Options) -> Iterator[socket.socket]:
    """The bound socket of the web processes; they start to listen on it."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as exc:
        listener.close()
        raise StartError(
            f"port {options.port} of {options.host} is not free ({exc.strerror}). End what uses "
            f"it, or take another port: INFERADMIN_PORT={options.port + 1} make up"
        ) from exc
    with listener:
        yield listener


def _catch_signals() -> None:
    """The first signal ends us in order; further ones change nothing."""

    def stop(number: int, _frame: FrameType | None) -> None:
        for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        raise _Stop(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def _say_with_time(text: str) -> None:
    say(f"{time.strftime('%H:%M:%S')}  {text}")

"""A real Triton Inference Server (CPU, Python backend) out of the wheel `nvidia-pytriton`."""

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from inferadmin.embedded.processes import Command, free_port

EXAMPLES = Path(__file__).parent / "repository"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
# Python models share memory with the server; each instance takes this much at first.
_SHARED_MEMORY_BYTES = 1024 * 1024


@lru_cache(maxsize=1)
def obstacle() -> str | None:
    """Why Triton cannot run here, and what would help; `None` when it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"Triton's wheel runs on x86-64 Linux only; this is {platform.platform()}"
    if importlib.util.find_spec("pytriton") is None:
        return "the package nvidia-pytriton is not installed; `make up` installs it"
    stub = _stub()
    if not stub.exists():
        return f"Triton's wheel has no Python backend for Python {_python()}"
    # Run without arguments it complains about them, once the loader has found its libraries.
    tried = subprocess.run([stub], env=_environment(), capture_output=True, check=False)  # noqa: S603
    if tried.returncode == 127:
        return (
            f"Triton's Python backend needs libpython{_python()}.so.1.0, which was not found; "
            f"install it (Debian: apt-get install libpython{_python()})"
        )
    return None


def copy_examples(target: Path) -> None:
    """Write the example models into a repository; other models in it are left alone."""
    for model in sorted(EXAMPLES.iterdir()):
        shutil.copytree(
            model,
            target / model.name,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )


@dataclass(frozen=True, slots=True)
class Triton:
    """Where a Triton keeps its things and listens: on 127.0.0.1 only, since it knows no sign-in."""

    # Model repository, in explicit control: nothing is loaded but what is asked for.
    repository: Path
    # Private copy of the backends, made by `command`.
    backends: Path
    # Models to load at start, before the server is ready.
    load_at_start: Sequence[str] = ()
    http_port: int = field(default_factory=free_port)
    grpc_port: int = field(default_factory=free_port)
    metrics_port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        """Root of the HTTP interface."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def grpc_address(self) -> str:
        """`host:port` of the gRPC interface."""
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def metrics_url(self) -> str:
        """Prometheus text."""
        return f"http://127.0.0.1:{self.metrics_port}/metrics"

    def command(self) -> Command:
        """How to run it; links the backends and makes the repository's folder."""
        self.repository.mkdir(parents=True, exist_ok=True)
        _link_backends(self.backends)
        return Command(
            name="triton",
            argv=(str(_server_folder() / "bin" / "tritonserver"), *self._options()),
            environment=_environment(),
            is_ready=self._is_live,
            tidy=self._free_shared_memory,
            ready_seconds=120,
            stop_seconds=15,
        )

    def _options(self) -> list[str]:
        options = {
            "model-repository": self.repository,
            "backend-directory": self.backends,
            "model-control-mode": "explicit",
            # A model that cannot be loaded at start shall not take the server down.
            "exit-on-error": "false",
            "exit-timeout-secs": 3,
            "http-address": "127.0.0.1",
            "http-port": self.http_port,
            "grpc-address": "127.0.0.1",
            "grpc-port": self.grpc_port,
            "metrics-address": "127.0.0.1",
            "metrics-port": self.metrics_port,
            "metrics-interval-ms": 1000,
            "backend-config": f"python,shm-region-prefix-name={self._memory_prefix}",
            # X-Request-ID reaches the models as a parameter.
            "http-header-forward-pattern": "(?i)x-request-id",
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        arguments += [
            f"--backend-config=python,shm-default-byte-size={_SHARED_MEMORY_BYTES}",
            *(f"--load-model={name}" for name in self.load_at_start),
        ]
        return arguments

    @property
    def _memory_prefix(self) -> str:
        """Start of the names of our shared memory: two Tritons of one machine must not meet."""
        return f"inferadmin_{hashlib.sha256(str(self.backends).encode()).hexdigest()[:12]}_"

    def _free_shared_memory(self) -> None:
        """Give back what a Triton that was killed has left behind."""
        for region in _SHARED_MEMORY.glob(f"{self._memory_prefix}*"):
            region.unlink(missing_ok=True)

    def _is_live(self) -> bool:
        with urllib.request.urlopen(f"{self.url}/v2/health/live", timeout=2) as answer:  # noqa: S310
            return bool(answer.status == 200)


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _site_packages() -> Path:
    return Path(sysconfig.get_paths()["purelib"])


def _server_folder() -> Path:
    return _site_packages() / "pytriton" / "tritonserver"


def _stub() -> Path:
    """The process that runs Python models; one build for each line of Python."""
    return _server_folder() / "python_backend_stubs" / _python() / "triton_python_backend_stub"


def _environment() -> dict[str, str]:
    """Libraries for the server; our packages and interpreter for its Python models."""
    libraries = [
        _site_packages() / "nvidia_pytriton.libs",
        _server_folder() / "lib",
        # Pythons that are not the system's keep libpython here.
        Path(str(sysconfig.get_config_var("LIBDIR"))),
    ]
    return {
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        # The stub takes its packages from the first Python in PATH and from nothing else: it is
        # built on an isolated interpreter, which does not look at PYTHONPATH.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }


def _link_backends(folder: Path) -> None:
    """A farm of links to the wheel's Python backend, with the stub of our Python beside it.

    Triton looks for the stub in the backend's folder; the wheel keeps it elsewhere.
    """
    shutil.rmtree(folder, ignore_errors=True)
    backend = folder / "python"
    backend.mkdir(parents=True)
    for item in (_server_folder() / "backends" / "python").iterdir():
        if item.is_file():
            (backend / item.name).symlink_to(item)
    (backend / _stub().name).symlink_to(_stub())

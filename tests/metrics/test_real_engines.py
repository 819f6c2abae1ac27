"""The sweep over a real Triton and a real llama.cpp."""

import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from apps.core.secrets import encrypt
from apps.fleet.models import Server
from apps.metrics.figures import Figures
from apps.metrics.models import Sample
from apps.metrics.selectors.current import placement_figures, server_figures
from apps.metrics.services.fold import gateway_fold
from apps.metrics.services.sweep import servers_sweep
from inferadmin.embedded.llamacpp import LlamaCpp
from inferadmin.embedded.triton import Triton
from tests.factories import ServerFactory
from tests.support.engines import llama_cpp, triton

__all__ = ["llama_cpp", "triton"]

pytestmark = [pytest.mark.e2e, pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

REQUESTS = 5


@pytest.fixture
def language_id(triton: Triton) -> Iterator[Callable[[int], None]]:
    """`language_id(n)` sends n requests to version 1; the model is loaded meanwhile."""
    model = f"{triton.url}/v2/repository/models/language-id"
    httpx.post(f"{model}/load", timeout=60).raise_for_status()

    def ask(times: int) -> None:
        tensor = {"name": "TEXT", "datatype": "BYTES", "shape": [1, 1], "data": ["good morning"]}
        for _request in range(times):
            httpx.post(
                f"{triton.url}/v2/models/language-id/versions/1/infer",
                json={"inputs": [tensor]},
                timeout=30,
            ).raise_for_status()

    yield ask
    httpx.post(f"{model}/unload", timeout=60).raise_for_status()


def registered(engine: Triton | LlamaCpp, kind: Server.Kind, api_key: str = "") -> Server:
    return ServerFactory.create(
        kind=kind,
        url=engine.url,
        metrics_url=engine.metrics_url,
        api_key_encrypted=encrypt(api_key),
    )


def wait_for(condition: Callable[[], object], seconds: float = 10) -> None:
    """Sweep until it is so: Triton refreshes its page once a second."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.3)
        servers_sweep()


def test_a_real_tritons_requests_become_rates_and_latency(
    triton: Triton, language_id: Callable[[int], None]
) -> None:
    server = registered(triton, Server.Kind.TRITON)
    servers_sweep()
    time.sleep(0.5)
    language_id(REQUESTS)

    servers_sweep()

    figures = placement_figures(server.pk)["language-id", 1]
    assert figures.requests_per_second is not None
    assert 0 < figures.requests_per_second <= REQUESTS / 0.2
    assert figures.latency_mean_ms is not None
    assert 0 < figures.latency_mean_ms < 1000
    assert figures.failures_per_second == 0
    assert figures.pending_requests == 0
    assert placement_figures(server.pk)["language-id", 2].requests_per_second == 0
    metrics = set(Sample.objects.values_list("series__metric", flat=True))
    assert {"requests_per_second", "latency_mean_ms", "cpu_ratio"} <= metrics

    gateway_fold()
    values = server_figures()[server.pk].values
    memory_used, memory_total = values["memory_used_bytes"], values["memory_total_bytes"]
    assert memory_used is not None
    assert memory_total is not None
    assert 0 < memory_used < memory_total


def test_a_real_reload_never_shows_a_negative_rate(
    triton: Triton, language_id: Callable[[int], None]
) -> None:
    server = registered(triton, Server.Kind.TRITON)
    language_id(REQUESTS)
    servers_sweep()
    model = f"{triton.url}/v2/repository/models/language-id"
    httpx.post(f"{model}/unload", timeout=60).raise_for_status()

    def figures() -> Figures | None:
        return placement_figures(server.pk).get(("language-id", 1))

    wait_for(lambda: figures() is None or figures() == Figures(failures_per_second=0.0))
    httpx.post(f"{model}/load", timeout=60).raise_for_status()
    servers_sweep()
    wait_for(lambda: (now := figures()) is not None and now.requests_per_second is not None)

    lowest = Sample.objects.filter(series__server=server).order_by("value").first()
    assert lowest is not None
    assert lowest.value >= 0


def test_a_real_llama_cpp_reports_tokens_for_its_key(llama_cpp: LlamaCpp) -> None:
    server = registered(llama_cpp, Server.Kind.LLAMA_CPP, llama_cpp.api_key)
    servers_sweep()
    time.sleep(0.5)
    httpx.post(
        f"{llama_cpp.url}/v1/completions",
        json={"prompt": "Once upon a time", "max_tokens": 8},
        headers={"Authorization": f"Bearer {llama_cpp.api_key}"},
        timeout=60,
    ).raise_for_status()

    servers_sweep()
    gateway_fold()

    values = server_figures()[server.pk].values
    assert values["pending_requests"] == 0
    assert values["tokens_per_second"] is not None
    assert values["tokens_per_second"] > 0
    # It counts no requests, so this is what the gateway sent it: nothing.
    assert values["requests_per_second"] == 0

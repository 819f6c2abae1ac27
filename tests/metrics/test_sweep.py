"""The sweep over servers whose metrics pages are scripted."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.core.redis import connection
from apps.core.secrets import encrypt
from apps.fleet.models import Gpu, Server
from apps.metrics import scraping
from apps.metrics.locks import one_at_a_time
from apps.metrics.models import Sample
from apps.metrics.selectors.current import placement_figures, server_figures
from apps.metrics.services.sweep import servers_sweep
from tests.factories import ServerFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

FIXTURES = Path(__file__).parent / "fixtures"
Answer = Callable[[httpx.Request], httpx.Response]


def server(**fields: Any) -> Server:
    return ServerFactory.create(**{"metrics_url": "http://metrics.test/metrics", **fields})


def text_of(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def sweep(answer: Answer | str) -> bool:
    def give(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=answer) if isinstance(answer, str) else answer(request)

    return servers_sweep(transport=httpx.MockTransport(give))


def test_a_sweep_writes_samples_and_current_figures() -> None:
    triton = server()

    assert sweep(text_of("triton_cpu"))

    figures = server_figures()[triton.pk]
    assert figures.scrape_error == ""
    assert figures.scraped_at > 0
    metrics = set(Sample.objects.values_list("series__metric", flat=True))
    assert metrics == {"cpu_ratio", "memory_used_bytes", "memory_total_bytes", "pending_requests"}
    assert placement_figures(triton.pk)["language-id", 2].pending_requests == 0


def test_gpus_become_rows_once() -> None:
    triton = server()

    sweep(text_of("triton_gpu"))
    sweep(text_of("triton_gpu"))

    rows = {gpu.uuid[-1]: gpu.memory_total_bytes for gpu in Gpu.objects.filter(server=triton)}
    assert rows == {"1": 85899345920, "2": 85899345920, "3": None}
    loads = Sample.objects.filter(series__metric="gpu_utilization_ratio")
    assert set(loads.values_list("series__labels__gpu", "value")) == {
        ("GPU-1f0c6a7e-0000-4000-8000-000000000001", 0.5),
        ("GPU-1f0c6a7e-0000-4000-8000-000000000002", 0.25),
    }


def redirect(request: httpx.Request) -> httpx.Response:
    return httpx.Response(302, headers={"Location": "http://elsewhere.test/"})


def html(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, html="<html>sign in</html>")


def garbage(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, content=b"\xff\xfe\x00 nothing of sense")


def forbidden(request: httpx.Request) -> httpx.Response:
    return httpx.Response(401, text="who are you")


def refused(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def cut(request: httpx.Request) -> httpx.Response:
    raise httpx.RemoteProtocolError("cut", request=request)


def packed(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=Endless())


class Endless(httpx.AsyncByteStream):
    """A body that never ends, and how much of it was read."""

    sent = 0

    async def __aiter__(self) -> Any:
        while True:
            Endless.sent += 65536
            yield b"x" * 65536


def huge(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, stream=Endless())


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (redirect, "redirected"),
        (html, "not_plain_text"),
        (packed, "not_plain_text"),
        (garbage, "not_prometheus"),
        (forbidden, "http_401"),
        (refused, "connect_failed"),
        (cut, "broken_answer"),
        (huge, "too_large"),
    ],
)
def test_a_bad_answer_has_a_reason_and_does_not_touch_the_server(
    answer: Answer, error: str
) -> None:
    triton = server(state=Server.State.ONLINE)

    sweep(answer)

    assert server_figures()[triton.pk].scrape_error == error
    triton.refresh_from_db()
    assert triton.state == Server.State.ONLINE
    assert Sample.objects.count() == 0
    assert Endless.sent <= 2 * scraping.MAX_BODY_BYTES


def test_a_server_that_hangs_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scraping, "TOTAL_SECONDS", 0.3)
    hanging, quick = server(metrics_url="http://hangs.test/"), server()

    class Network(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.host == "hangs.test":
                await asyncio.sleep(30)
            return httpx.Response(200, text=text_of("vllm"))

    servers_sweep(transport=Network())

    assert server_figures()[hanging.pk].scrape_error == "timeout"
    assert server_figures()[quick.pk].scrape_error == ""


def test_a_page_that_failed_is_left_alone_for_a_while() -> None:
    server()
    asked: list[str] = []

    def count(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(500)

    sweep(count)
    sweep(count)

    assert len(asked) == 1


def test_disabled_servers_and_those_without_a_page_are_not_asked() -> None:
    server(is_enabled=False)
    server(metrics_url="")

    assert sweep(refused)
    assert server_figures() == {}


def test_what_a_deleted_server_did_is_forgotten() -> None:
    triton = server()
    sweep(text_of("triton_cpu"))

    triton.delete()
    sweep(text_of("triton_cpu"))

    assert server_figures() == {}


@pytest.mark.parametrize(
    ("url", "sent"),
    [("http://metrics.test", "Bearer sk-upstream"), ("http://metrics.test:9000", None)],
)
def test_the_servers_key_goes_to_its_own_host_and_port_only(url: str, sent: str | None) -> None:
    server(url=url, api_key_encrypted=encrypt("sk-upstream"))
    seen: list[str | None] = []

    def note(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx.Response(200, text="")

    sweep(note)

    assert seen == [sent]


def test_two_sweeps_do_not_run_at_once() -> None:
    triton = server()

    with one_at_a_time("sweep", seconds=5):
        assert not sweep(text_of("triton_cpu"))

    assert triton.pk not in server_figures()
    assert sweep(text_of("triton_cpu"))


def test_losing_redis_memory_costs_one_step_without_rates() -> None:
    triton = server()
    sweep(text_of("triton_cpu"))
    connection().flushdb()

    sweep(text_of("triton_cpu"))

    assert placement_figures(triton.pk)["language-id", 1].requests_per_second is None

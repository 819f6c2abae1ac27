"""Folding the gateway's frames into samples, totals and live ticks."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import redis.asyncio
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError

from apps.core.redis import connection
from apps.gateway.frames import Frames, Measured
from apps.metrics import gateway_memory
from apps.metrics.gateway_memory import Progress
from apps.metrics.histogram import bucket_of
from apps.metrics.locks import one_at_a_time
from apps.metrics.models import Sample
from apps.metrics.names import GATEWAY_STREAM, topic_of
from apps.metrics.points import Point, SeriesKey
from apps.metrics.scrape_memory import Current, remember
from apps.metrics.selectors.current import overview_now, server_figures
from apps.metrics.selectors.history import history
from apps.metrics.services import fold
from apps.metrics.services.fold import gateway_fold
from apps.metrics.services.samples import samples_write
from apps.metrics.watchers import watch
from tests.factories import ServerFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The second that is just past; Redis' clock stands still, one second later."""
    past = gateway_memory.clock() - 1
    monkeypatch.setattr(gateway_memory, "clock", lambda: past + 1)
    return past  # type: ignore[return-value]


def row(**fields: Any) -> dict[str, Any]:
    return {
        "route": "smollm2",
        "server": 1,
        "model": "smollm2",
        "status": "ok",
        "count": 1,
        "input_tokens": 0,
        "output_tokens": 0,
        "latency": {},
        "first_token": {},
        "added": {},
    } | fields


def latency(seconds: float, count: int) -> dict[str, int]:
    return {str(bucket_of(seconds)): count}


def send(second: int, *rows: dict[str, Any], worker: str = "w1", in_flight: int = 0) -> None:
    frame = {"worker": worker, "at": second, "in_flight": in_flight, "rows": rows}
    send_raw(second, json.dumps(frame))


def send_raw(second: int, frame: str) -> None:
    connection().xadd(GATEWAY_STREAM, {"frame": frame}, id=f"{second}500-*")


def test_frames_of_all_workers_become_one_second(second: int) -> None:
    send(
        second,
        row(count=90, output_tokens=300, latency=latency(0.1, 90), first_token=latency(0.02, 90)),
        row(count=5, status="error", latency=latency(2, 5)),
        in_flight=3,
    )
    send(second, row(count=5, latency=latency(2, 5)), worker="w2", in_flight=4)

    assert gateway_fold() == 1

    now = overview_now()
    assert now["requests_per_second"] == 100
    assert now["error_ratio"] == 0.05
    assert now["tokens_per_second"] == 300
    assert now["in_flight"] == 7
    assert now["latency_p50_ms"] == pytest.approx(100, rel=0.05)
    assert now["latency_p95_ms"] == pytest.approx(2000, rel=0.05)
    assert now["first_token_p95_ms"] == pytest.approx(20, rel=0.05)
    at = datetime.fromtimestamp(second, UTC)
    sample = Sample.objects.get(series__metric="requests_per_second", series__server=None)
    assert (sample.at, sample.value) == (at, 100)


def test_the_gateways_own_frames_are_understood() -> None:
    async def measure() -> None:
        client = redis.asyncio.Redis.from_url(settings.REDIS_URL)
        frames = Frames(client, "w1")
        frames.in_flight = 2
        frames.take(Measured("smollm2", "7", "m", "ok", 10, 20, 0.2, 0.05, 0.001))
        await frames.flush()
        await client.aclose()

    ServerFactory.create(pk=7)
    async_to_sync(measure)()
    entries = cast(list[tuple[bytes, Any]], connection().xrevrange(GATEWAY_STREAM, count=1))
    arrived = int(entries[0][0].split(b"-")[0]) // 1000
    while gateway_memory.clock() <= arrived:
        time.sleep(0.05)

    gateway_memory.keep(Progress(arrived - 1), [], gateway_memory.Now(arrived - 1, {}, {}))
    gateway_fold()

    assert gateway_memory.totals()["tokens", "smollm2", "output"] == 20
    latency = Sample.objects.get(series__metric="latency_mean_ms", series__server=7)
    assert latency.value == pytest.approx(200, rel=0.05)


def test_idle_is_zero_requests_and_no_latency(second: int) -> None:
    gateway_fold()

    now = overview_now()
    assert now["requests_per_second"] == 0
    assert now["in_flight"] == 0
    assert now["latency_p95_ms"] is None
    assert now["error_ratio"] is None
    assert "gpu_utilization_ratio" not in now
    assert not Sample.objects.filter(series__metric="latency_p95_ms").exists()


def test_a_cancelled_request_is_no_error(second: int) -> None:
    send(second, row(status="cancelled"), row(status="partial"))

    gateway_fold()

    assert overview_now()["error_ratio"] == 0.5


def test_a_second_is_counted_once(second: int) -> None:
    send(second, row(count=3))

    assert gateway_fold() == 1
    assert gateway_fold() == 0

    assert gateway_memory.totals()["requests", "smollm2", "ok"] == 3


def test_a_worker_that_dies_before_the_end_loses_and_doubles_nothing(
    second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*args: object) -> None:
        raise KeyboardInterrupt

    send(second, row(count=3))
    with monkeypatch.context() as patch:
        patch.setattr(gateway_memory, "keep", die)
        with pytest.raises(KeyboardInterrupt):
            gateway_fold()

    gateway_fold()

    assert gateway_memory.totals()["requests", "smollm2", "ok"] == 3
    assert Sample.objects.get(series__metric="requests_per_second").value == 3


def test_after_a_pause_old_seconds_count_but_only_recent_ones_are_drawn(second: int) -> None:
    gateway_memory.keep(Progress(second - 100), [], gateway_memory.Now(second - 100, {}, {}))
    send(second - 90, row(count=7))
    send(second - 10, row(count=2))

    assert gateway_fold() == 60

    assert gateway_memory.totals()["requests", "smollm2", "ok"] == 9
    drawn = Sample.objects.filter(series__metric="requests_per_second")
    assert drawn.count() == 60
    assert sorted(drawn.values_list("value", flat=True))[-2:] == [0, 2]


def test_in_flight_of_a_worker_that_fell_silent_is_forgotten(second: int) -> None:
    gateway_memory.keep(
        Progress(second - 1, {"dead": (second - 10, 50), "late": (second - 2, 4)}),
        [],
        gateway_memory.Now(second - 1, {}, {}),
    )

    gateway_fold()

    assert overview_now()["in_flight"] == 4


@pytest.mark.parametrize(
    "frame",
    ["", "not json", "[]", "7", '{"rows": 7}', '{"rows": [7, null, {}, {"count": "x"}]}'],
)
def test_garbage_in_the_stream_hurts_nobody(second: int, frame: str) -> None:
    send_raw(second, frame)
    send(second, row(count=2))

    gateway_fold()

    assert overview_now()["requests_per_second"] == 2


def test_servers_show_their_engines_figures_above_the_gateways(second: int) -> None:
    triton, external = ServerFactory.create_batch(2)
    values = {"requests_per_second": 40.0, "latency_mean_ms": None, "cpu_ratio": 0.5}
    remember({}, {triton.pk: Current(at=float(second), values=values)})
    send(
        second,
        row(server=triton.pk, count=2, output_tokens=9),
        row(server=external.pk, count=4, latency=latency(0.2, 4)),
    )

    gateway_fold()

    figures = server_figures()
    assert figures[triton.pk].figures.requests_per_second == 40
    assert figures[triton.pk].figures.latency_mean_ms is None
    assert figures[triton.pk].figures.tokens_per_second == 9
    assert figures[triton.pk].values["cpu_ratio"] == 0.5
    assert figures[external.pk].figures.requests_per_second == 4
    assert figures[external.pk].figures.latency_mean_ms == pytest.approx(200, rel=0.05)
    assert figures[external.pk].figures.queue_mean_ms is None
    assert overview_now()["cpu_ratio"] == 0.5
    # The sweep has written the engine's own values; folding them again would double them.
    drawn = Sample.objects.filter(series__server=triton).values_list("series__metric", flat=True)
    assert set(drawn) == {"failures_per_second", "tokens_per_second"}


def test_an_engine_that_has_not_been_read_lately_says_nothing(second: int) -> None:
    server = ServerFactory.create()
    remember({}, {server.pk: Current(at=float(second - 60), values={"cpu_ratio": 0.5})})

    gateway_fold()

    assert "cpu_ratio" not in overview_now()
    assert "cpu_ratio" not in server_figures()[server.pk].values


def test_gpus_of_all_servers_are_summed_up(second: int) -> None:
    server = ServerFactory.create()
    gpus = {
        "gpu/a/utilization_ratio": 0.5,
        "gpu/b/utilization_ratio": 0.0,
        "gpu/a/memory_used_bytes": 10.0,
        "gpu/a/memory_total_bytes": 20.0,
        "gpu/b/memory_total_bytes": 20.0,
    }
    remember({}, {server.pk: Current(at=float(second), values=gpus)})

    gateway_fold()

    now = overview_now()
    assert now["gpu_utilization_ratio"] == 0.25
    assert now["gpu_memory_used_bytes"] == 10
    assert now["gpu_memory_total_bytes"] == 40


def test_only_topics_that_somebody_watches_get_ticks(second: int) -> None:
    layer = get_channel_layer()
    assert layer is not None
    server, other = ServerFactory.create_batch(2)
    channel = async_to_sync(layer.new_channel)()
    for group in ("live.overview", f"live.server.{server.pk}", f"live.server.{other.pk}"):
        async_to_sync(layer.group_add)(group, channel)
    watch(["overview", f"server:{server.pk}"])
    send(second, row(server=server.pk, count=5))

    gateway_fold()

    ticks = [async_to_sync(layer.receive)(channel)["tick"] for _tick in range(2)]
    assert [tick["topic"] for tick in ticks] == ["overview", f"server:{server.pk}"]
    assert {tick["t"] for tick in ticks} == {second}
    assert ticks[1]["values"]["requests_per_second"] == 5
    assert channel not in layer.channels  # type: ignore[attr-defined]  # the layer in memory


def test_live_figures_go_on_while_postgres_does_not_take_samples(
    second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> int:
        raise DatabaseError("away")

    monkeypatch.setattr(fold, "samples_write", refuse)
    send(second, row(count=5))

    gateway_fold()

    assert overview_now()["requests_per_second"] == 5


def test_two_folds_do_not_run_at_once(second: int) -> None:
    send(second, row(count=5))

    with one_at_a_time("fold", seconds=5):
        assert gateway_fold() == 0
    assert gateway_fold() == 1


def test_history_shows_what_was_folded_and_names_gpus(second: int) -> None:
    server = ServerFactory.create()
    at = datetime.fromtimestamp(second, UTC)
    key = SeriesKey("gpu_power_watts", server.pk, (("gpu", "GPU-1"),))
    samples_write(points=[Point(key, at, 300.0)])
    send(second, row(count=5))
    gateway_fold()

    overview = history(topic_of("overview"))
    gpu = history(topic_of(f"server:{server.pk}"))

    assert max(v for v in overview["series"]["requests_per_second"] if v is not None) == 5
    assert gpu["series"]["gpu/GPU-1/power_watts"][-1] == 300

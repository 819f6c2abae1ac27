"""The live socket, in process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.conf import LazySettings
from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.utils import timezone

from apps.core.models import User
from apps.metrics.consumers import LiveConsumer
from apps.metrics.events import Tick, TickEvent
from apps.metrics.points import Point, SeriesKey
from apps.metrics.services.samples import samples_write
from apps.metrics.watchers import watched
from inferadmin import settings as product_settings
from inferadmin.routing import build_application
from tests.factories import ServerFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def closed_connections() -> AsyncIterator[None]:
    """Channels' test tools keep database connections of other threads open."""
    yield
    await sync_to_async(connections.close_all)()


def socket_of(
    user: object, topics: str = "overview", consumer: type[LiveConsumer] = LiveConsumer
) -> WebsocketCommunicator:
    socket = WebsocketCommunicator(consumer.as_asgi(), f"/ws/live/?topics={topics}")
    cast(dict[str, Any], socket.scope)["user"] = user
    return socket


class Hasty(LiveConsumer):
    heartbeat_seconds = 0.05


@asynccontextmanager
async def watching(
    user: object, topics: str = "overview", consumer: type[LiveConsumer] = LiveConsumer
) -> AsyncIterator[WebsocketCommunicator]:
    """A socket that is open and has had its snapshots."""
    socket = socket_of(user, topics, consumer)
    await socket.connect()
    for _topic in topics.split(","):
        assert (await socket.receive_json_from())["type"] == "snapshot"
    yield socket
    await socket.disconnect()


async def close_code_of(socket: WebsocketCommunicator) -> int:
    await socket.connect()
    return int((await socket.receive_output())["code"])


async def push_tick(topic: str, **values: float | None) -> None:
    layer = get_channel_layer()
    assert layer is not None
    tick = Tick(type="tick", topic=topic, t=1_700_000_000, values=dict(values))
    group = f"live.{topic.replace(':', '.')}"
    await layer.group_send(group, dict(TickEvent(type="live.tick", tick=tick)))


async def push_change(pk: str) -> None:
    layer = get_channel_layer()
    assert layer is not None
    await layer.group_send(
        "live.changes", {"type": "live.changed", "kind": "placement", "id": pk, "server_id": 3}
    )


async def test_a_viewer_first_gets_the_history_and_then_ticks(viewer: User) -> None:
    socket = socket_of(viewer)
    await socket.connect()
    snapshot = await socket.receive_json_from()
    await push_tick("overview", requests_per_second=0, latency_p95_ms=None)
    tick = await socket.receive_json_from()

    assert snapshot["type"] == "snapshot"
    assert snapshot["topic"] == "overview"
    assert snapshot["t"][1] - snapshot["t"][0] == snapshot["step"]
    assert tick["values"] == {"requests_per_second": 0, "latency_p95_ms": None}
    await socket.disconnect()


async def test_a_socket_gets_the_ticks_of_its_topics_only(viewer: User) -> None:
    server = await database_sync_to_async(ServerFactory.create)()

    async with watching(viewer, f"server:{server.pk}") as socket:
        await push_tick("overview", requests_per_second=1)
        await push_tick(f"server:{server.pk}", requests_per_second=2)

        assert (await socket.receive_json_from())["topic"] == f"server:{server.pk}"
        assert await socket.receive_nothing()


async def test_changes_are_passed_on(viewer: User) -> None:
    async with watching(viewer) as socket:
        await push_change("12")

        assert await socket.receive_json_from() == {
            "type": "changed",
            "kind": "placement",
            "id": "12",
            "server_id": 3,
        }


@pytest.mark.parametrize("user", [AnonymousUser(), None])
async def test_who_is_not_signed_in_is_told_so(user: object) -> None:
    assert await close_code_of(socket_of(user)) == 4401


async def test_a_person_who_is_switched_off_may_not_watch() -> None:
    user = UserFactory.build(is_active=False)

    assert await close_code_of(socket_of(user)) == 4403


@pytest.mark.parametrize(
    "topics",
    [
        "",
        "nothing",
        "server:x",
        "server:",
        "server:-1",
        "server:1;drop",
        ",".join(["overview"] * 9),
    ],
)
async def test_unknown_topics_are_refused(viewer: User, topics: str) -> None:
    assert await close_code_of(socket_of(viewer, topics)) == 4400


async def test_a_server_that_does_not_exist_is_refused(viewer: User) -> None:
    assert await close_code_of(socket_of(viewer, "server:999999999")) == 4404


async def test_whatever_a_browser_says_is_ignored(viewer: User) -> None:
    async with watching(viewer) as socket:
        await socket.send_to(text_data="{not json")
        await socket.send_to(bytes_data=b"\xff\x00")
        await push_tick("overview", requests_per_second=1)

        assert (await socket.receive_json_from())["type"] == "tick"


async def test_the_socket_beats_while_nothing_happens(viewer: User) -> None:
    async with watching(viewer, consumer=Hasty) as socket:
        assert (await socket.receive_json_from())["type"] == "heartbeat"


async def test_the_socket_closes_when_the_person_is_switched_off(viewer: User) -> None:
    async with watching(viewer, consumer=Hasty) as socket:
        await database_sync_to_async(User.objects.filter(pk=viewer.pk).update)(is_active=False)

        output = await socket.receive_output()
        while output["type"] == "websocket.send":
            output = await socket.receive_output()
        assert output == {"type": "websocket.close", "code": 4401}


async def test_a_slow_browser_loses_old_ticks_but_no_change(viewer: User) -> None:
    reading = asyncio.Event()

    class Slow(LiveConsumer):
        async def send(self, *args: Any, **kwargs: Any) -> None:
            await reading.wait()
            await super().send(*args, **kwargs)

    socket = socket_of(viewer, consumer=Slow)
    await socket.connect()
    await push_change("1")
    for value in range(50):
        await push_tick("overview", requests_per_second=value)
        await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    reading.set()

    frames = [await socket.receive_json_from() for _frame in range(3)]
    assert [frame["type"] for frame in frames] == ["snapshot", "changed", "tick"]
    assert frames[2]["values"] == {"requests_per_second": 49}
    assert await socket.receive_nothing()
    await socket.disconnect()


async def test_a_browser_that_does_not_read_at_all_is_cut_off(viewer: User) -> None:
    class Stuck(LiveConsumer):
        send_timeout_seconds = 0.05

        async def send(self, *args: Any, **kwargs: Any) -> None:
            await asyncio.sleep(60)

    socket = socket_of(viewer, consumer=Stuck)

    assert await close_code_of(socket) == 4408


async def test_the_snapshot_is_aligned_and_shows_gaps(viewer: User) -> None:
    now = timezone.now()
    key = SeriesKey("requests_per_second", None)
    await database_sync_to_async(samples_write)(
        points=[
            Point(key, now - timedelta(seconds=60), 4.0),
            Point(key, now - timedelta(seconds=20), 2.0),
        ]
    )

    socket = socket_of(viewer)
    await socket.connect()
    snapshot = await socket.receive_json_from()

    line = snapshot["series"]["requests_per_second"]
    assert len(line) == len(snapshot["t"])
    assert [value for value in line if value is not None] == [4.0, 2.0]
    assert set(snapshot["series"]) == {"requests_per_second"}
    await socket.disconnect()


@pytest.mark.usefixtures("empty_redis")
async def test_a_topic_is_watched_while_a_socket_is_open(viewer: User) -> None:
    assert watched() == set()

    async with watching(viewer):
        assert watched() == {"overview"}


async def test_a_socket_over_real_redis(viewer: User, settings: LazySettings) -> None:
    settings.CHANNEL_LAYERS = product_settings.CHANNEL_LAYERS

    async with watching(viewer) as socket:
        await push_tick("overview", requests_per_second=1.5)
        await push_change("12")

        assert (await socket.receive_json_from())["values"] == {"requests_per_second": 1.5}
        assert (await socket.receive_json_from())["kind"] == "placement"


async def test_when_redis_is_away_the_page_is_asked_to_try_again(
    viewer: User, settings: LazySettings
) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {"hosts": ["redis://127.0.0.1:1/0"]},
        },
    }

    socket = socket_of(viewer)

    assert await close_code_of(socket) == 1013


async def test_a_socket_that_does_not_exist_is_refused() -> None:
    application = build_application(None)
    headers = [(b"origin", b"http://localhost")]

    for path in ("/ws/nothing", "/v1/chat/completions"):
        socket = WebsocketCommunicator(application, path, headers=headers)
        assert await socket.connect() == (False, 4404)

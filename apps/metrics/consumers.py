"""The live socket: a snapshot of each topic, then one small frame a second."""

import asyncio
from contextlib import suppress
from time import time
from typing import Any, ClassVar
from urllib.parse import parse_qs

import orjson
import redis
import structlog
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from apps.core.errors import InferAdminError, InvalidRequestError, NotFoundError
from apps.core.live import CHANGES_GROUP
from apps.core.models import User
from apps.core.roles import Permission
from apps.metrics.events import Changed, Frame, Heartbeat, TickEvent, group_of
from apps.metrics.names import Topic, topic_of
from apps.metrics.outbox import Outbox
from apps.metrics.selectors import history as histories
from apps.metrics.selectors.people import may_still_watch
from apps.metrics.watchers import watch

log = structlog.get_logger(__name__)

MAX_TOPICS = 8
# A Redis that hangs takes no more than this from a page that connects.
JOIN_SECONDS = 3

# Close codes: 4000 and an HTTP status, so that a page can tell "sign in" from "try again".
BAD_REQUEST = 4400
NOT_SIGNED_IN = 4401
NOT_ALLOWED = 4403
NOT_FOUND = 4404
TOO_SLOW = 4408
TRY_AGAIN = 1013


class LiveConsumer(AsyncWebsocketConsumer):
    """One browser that watches a few topics. What it sends is ignored."""

    heartbeat_seconds: ClassVar[float] = 10
    # A browser that takes longer for one frame is cut off; it comes back and starts anew.
    send_timeout_seconds: ClassVar[float] = 15

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the socket; when the channel layer goes away, ask the page to try again."""
        self._outbox = Outbox()
        self._helpers: list[asyncio.Task[None]] = []
        try:
            await super().__call__(scope, receive, send)
        except (redis.RedisError, OSError) as exc:
            log.warning("metrics.socket_lost_redis", error=type(exc).__name__)
            with suppress(RuntimeError, OSError):  # the browser may have gone as well
                await send({"type": "websocket.close", "code": TRY_AGAIN})
        finally:
            for helper in self._helpers:
                helper.cancel()

    async def connect(self) -> None:
        """Accept, then close with a code that says why, or start with the snapshots."""
        await self.accept()
        refusal = _refusal(self.scope.get("user"))
        if refusal is not None:
            await self.close(code=refusal)
            return
        try:
            topics = _topics_of(self.scope)
            await self._watch(topics)
        except InferAdminError as exc:
            code = NOT_FOUND if isinstance(exc, NotFoundError) else BAD_REQUEST
            await self.close(code=code, reason=exc.message)
        except DatabaseError:
            await self.close(code=TRY_AGAIN)

    async def _watch(self, topics: list[Topic]) -> None:
        """Join first and look back then, so that no second is missed between the two."""
        layer = self.channel_layer
        if layer is None:
            raise OSError("no channel layer is configured")
        async with asyncio.timeout(JOIN_SECONDS):
            for group in [CHANGES_GROUP, *map(group_of, topics)]:
                await layer.group_add(group, self.channel_name)
                self.groups.append(group)  # left by the base class when the socket closes
        self._topics = [str(topic) for topic in topics]
        await sync_to_async(watch)(self._topics)
        for topic in topics:
            self._outbox.add(await database_sync_to_async(histories.history)(topic))
        self._helpers = [
            asyncio.create_task(self._send_all()),
            asyncio.create_task(self._beat()),
        ]

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Ignore whatever a browser says: there is nothing to ask for."""

    async def live_tick(self, event: TickEvent) -> None:
        """One second of a topic has come."""
        await self._queue(event["tick"])

    async def live_changed(self, event: dict[str, Any]) -> None:
        """An object has changed."""
        await self._queue(
            Changed(
                type="changed",
                kind=event["kind"],
                id=event["id"],
                server_id=event["server_id"],
            )
        )

    async def _queue(self, frame: Frame) -> None:
        if not self._outbox.add(frame):
            await self._end(TOO_SLOW)

    async def _send_all(self) -> None:
        """Send what comes into the outbox until the browser goes or stops reading."""
        while True:
            frame = await self._outbox.take()
            try:
                async with asyncio.timeout(self.send_timeout_seconds):
                    await self.send(text_data=orjson.dumps(frame).decode())
            except TimeoutError:
                await self._end(TOO_SLOW)
                return
            except (OSError, RuntimeError):  # the browser went while we were sending
                return

    async def _beat(self) -> None:
        """Every few seconds a sign of life, and a look whether the person may still watch."""
        while True:
            await asyncio.sleep(self.heartbeat_seconds)
            if not await self._may_still_watch():
                await self._end(NOT_SIGNED_IN)
                return
            with suppress(redis.RedisError):
                await sync_to_async(watch)(self._topics)
            self._outbox.add(Heartbeat(type="heartbeat", t=int(time())))

    async def _end(self, code: int) -> None:
        """Stop sending and close; the base class leaves the groups when the browser confirms."""
        for helper in self._helpers:
            if helper is not asyncio.current_task():
                helper.cancel()
        with suppress(OSError, RuntimeError):
            await self.close(code=code)

    async def _may_still_watch(self) -> bool:
        """False for who was signed out or switched off; Postgres being away closes nothing."""
        user, session = self.scope.get("user"), self.scope.get("session")
        if user is None:
            return False
        try:
            return await database_sync_to_async(may_still_watch)(
                user.pk, session.session_key if session else None
            )
        except DatabaseError:
            return True


def _refusal(user: object) -> int | None:
    """Close code for who may not watch; `None` for who may."""
    if not isinstance(user, User):
        return NOT_SIGNED_IN
    return None if user.may(Permission.VIEW) else NOT_ALLOWED


def _topics_of(scope: Any) -> list[Topic]:
    """Topics of `?topics=overview,server:3`, each once; raises InvalidRequestError."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    words = [word for word in query.get("topics", [""])[-1].split(",") if word]
    if not 1 <= len(words) <= MAX_TOPICS:
        raise InvalidRequestError(f"topics: name 1 to {MAX_TOPICS} of them, with commas between")
    return list(dict.fromkeys(map(topic_of, words)))

"""The gateway's door: a small ASGI application for `/v1/…`, without Django's handler.

Django's own costs over a millisecond of CPU a request (docs/adr/0001). Here the body is read, the
gateway's URLs are resolved and the view is awaited; nothing else happens.
"""

import asyncio
import contextlib
import gc
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import lru_cache
from io import BytesIO
from typing import Any
from uuid import uuid4

import orjson
from django.conf import settings
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, ResolverMatch, get_resolver
from rest_framework.response import Response

from apps.core.errors import InferAdminError, NoCapacityError, NotFoundError
from apps.gateway.errors import (
    BodyTooLargeError,
    BodyTooSlowError,
    error_headers,
    http_status,
)
from apps.gateway.fronts.by_path import front_of
from apps.gateway.runtime import Runtime
from apps.gateway.views.dispatch import GatewayRequest

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_URLCONF = "apps.gateway.urls"
_SAFE_ID = re.compile(r"^[A-Za-z0-9._-]{8,64}$")
_BODY_SECONDS = 30.0
_DRAINED_LIMITS = 8


class _ClientGoneError(Exception):
    """The client left before its request was whole."""


class GatewayApplication:
    """Serves one event loop. `start` and `stop` belong to the server's lifespan."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        self._starting = asyncio.Lock()
        self._in_flight = 0

    async def start(self) -> Runtime:
        """Make the runtime, once; servers without a lifespan get it with the first request."""
        async with self._starting:
            if self._runtime is None:
                runtime = Runtime()
                await runtime.start()
                # What is there now stays: the garbage collector need not look at it again.
                gc.collect()
                gc.freeze()
                self._runtime = runtime
        return self._runtime

    async def stop(self) -> None:
        """Settle and close."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of scope type `http`."""
        runtime = self._runtime or await self.start()
        request_id = _request_id(scope)
        if self._in_flight >= settings.GATEWAY_MAX_REQUESTS:
            await _refuse(scope, send, request_id, _full())
            return
        self._in_flight += 1
        runtime.frames.in_flight = self._in_flight
        try:
            await _serve(runtime, request_id, scope, receive, send)
        finally:
            self._in_flight -= 1
            runtime.frames.in_flight = self._in_flight


async def _serve(
    runtime: Runtime, request_id: str, scope: Scope, receive: Receive, send: Send
) -> None:
    try:
        body = await _read_body(scope, receive)
        view, args, kwargs = _resolved(scope["path"])
    except _ClientGoneError:
        return
    except InferAdminError as exc:
        await _refuse(scope, send, request_id, exc)
        return
    except Resolver404:
        await _refuse(scope, send, request_id, _no_such_path(scope["path"]))
        return
    request = GatewayRequest(scope, BytesIO(body))
    request.runtime, request.request_id = runtime, request_id
    async with _until_client_leaves(receive):
        response = await view(request, *args, **kwargs)
        await _send(response, request_id, send)


@lru_cache(maxsize=1024)
def _resolved(path: str) -> ResolverMatch:
    """What answers the path; remembered, for Django looks at its patterns one by one."""
    return get_resolver(_URLCONF).resolve(path)


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body. Raises BodyTooLargeError.

    A body that is somewhat too large is read to its end and dropped: many clients send all of it
    before they look at the answer.
    """
    limit: int = settings.MAX_BODY_BYTES
    drained = 0 if _announced_bytes(scope) > limit * _DRAINED_LIMITS else limit * _DRAINED_LIMITS
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while size <= limit or size < drained:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _ClientGoneError
                piece = message.get("body", b"")
                size += len(piece)
                if size <= limit:
                    pieces.append(piece)
                if not message.get("more_body", False):
                    break
    except TimeoutError as exc:
        raise BodyTooSlowError(f"the body did not come within {_BODY_SECONDS:.0f} s") from exc
    if size > limit:
        raise BodyTooLargeError(f"the body is larger than {limit} bytes")
    return b"".join(pieces)


def _announced_bytes(scope: Scope) -> int:
    """What `Content-Length` says; 0 for a body that comes in chunks."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


@contextlib.asynccontextmanager
async def _until_client_leaves(receive: Receive) -> AsyncIterator[None]:
    """Cancel what is inside when the client closes its connection, and swallow that."""
    inside = asyncio.current_task()
    has_left = False

    async def watch() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        if inside is not None:
            inside.cancel()

    watching = asyncio.get_running_loop().create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not has_left or inside is None or inside.uncancel() > 0:
            raise
    finally:
        watching.cancel()


async def _send(response: HttpResponseBase, request_id: str, send: Send) -> None:
    if isinstance(response, Response):
        response.render()
    headers = [
        *((name.lower().encode(), value.encode()) for name, value in response.items()),
        (b"x-request-id", request_id.encode()),
    ]
    if isinstance(response, StreamingHttpResponse):
        await _send_stream(response, headers, send)
        return
    body = response.content  # type: ignore[attr-defined]  # all but streams have it
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_stream(
    response: StreamingHttpResponse, headers: list[tuple[bytes, bytes]], send: Send
) -> None:
    """Pass on what comes; whatever ends this, the generator is closed and settles."""
    events: Any = response._iterator  # type: ignore[attr-defined]  # as the view gave it
    async with contextlib.aclosing(events):
        await send(
            {"type": "http.response.start", "status": response.status_code, "headers": headers}
        )
        async for piece in events:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, send: Send, request_id: str, error: InferAdminError) -> None:
    """Answer without a view."""
    body = orjson.dumps(front_of(scope["path"]).error(error))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
        *((name.lower().encode(), value.encode()) for name, value in error_headers(error).items()),
    ]
    await send({"type": "http.response.start", "status": http_status(error), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _request_id(scope: Scope) -> str:
    """The client's own, when it is harmless, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin1")
            return given if _SAFE_ID.match(given) else uuid4().hex
    return uuid4().hex


def _full() -> NoCapacityError:
    return NoCapacityError(
        "the gateway has as many requests as it takes; try again in a second",
        code="too_many_requests_at_once",
        retry_after_seconds=1,
    )


def _no_such_path(path: str) -> NotFoundError:
    return NotFoundError(
        f"there is nothing at {path[:100]}; the gateway answers /v1/chat/completions, "
        "/v1/completions, /v1/embeddings, /v1/messages and /v1/models",
        code="unknown_url",
    )

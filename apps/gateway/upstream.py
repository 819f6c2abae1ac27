"""The one seam to model servers: a pooled client of an event loop, with four timeouts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from time import time
from typing import Literal

import aiohttp

from apps.core.errors import UpstreamError, UpstreamProtocolError, UpstreamTimeoutError
from apps.fleet.egress import guarded_socket
from apps.gateway.adapters.contract import UpstreamRequest
from apps.gateway.snapshot import Timeouts

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
# Shorter than what common servers keep: a request must not meet a connection that is closing.
_KEEP_ALIVE_SECONDS = 4.0
_DNS_CACHE_SECONDS = 30
_MAX_RETRY_AFTER_SECONDS = 3600.0

Phase = Literal["first_byte", "stream"]


class Upstream:
    """Sends requests to model servers. Close it when the event loop ends."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_KEEP_ALIVE_SECONDS,
                ttl_dns_cache=_DNS_CACHE_SECONDS,
                socket_factory=guarded_socket,
            ),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"accept-encoding": "identity"},
            skip_auto_headers=("user-agent",),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    @asynccontextmanager
    async def open(
        self, request: UpstreamRequest, timeouts: Timeouts, *, deadline: float, request_id: str
    ) -> AsyncIterator["UpstreamResponse"]:
        """Send a request; inside the block its answer can be read, until `deadline` (loop time).

        Leaving the block early closes the connection, by which the server learns that nobody
        listens. Raises UpstreamError and UpstreamTimeoutError.
        """
        now = asyncio.get_running_loop().time()
        first_byte_by = min(now + timeouts.first_byte, deadline)
        response = await self._post(request, timeouts, first_byte_by, request_id)
        try:
            yield UpstreamResponse(response, timeouts, first_byte_by, deadline)
        finally:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    async def _post(
        self, request: UpstreamRequest, timeouts: Timeouts, first_byte_by: float, request_id: str
    ) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout_at(first_byte_by):
                return await self._session.post(
                    request.url,
                    data=request.body,
                    headers={**request.headers, "x-request-id": request_id},
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect),
                )
        except aiohttp.ServerTimeoutError as exc:
            raise UpstreamTimeoutError(
                "the model server could not be reached in time", phase="connect"
            ) from exc
        except TimeoutError as exc:
            raise _late("first_byte") from exc
        except aiohttp.ClientConnectorError as exc:
            raise UpstreamError(
                "the model server cannot be reached", code="upstream_unreachable"
            ) from exc
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise UpstreamError("the model server broke the connection off") from exc


class UpstreamResponse:
    """An answer whose status has come and whose body comes piece by piece."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        timeouts: Timeouts,
        first_byte_by: float,
        deadline: float,
    ) -> None:
        self.status = response.status
        self._response = response
        self._idle_seconds = timeouts.idle
        self._phase: Phase = "first_byte"
        self._read_by = first_byte_by
        self._deadline = deadline

    @property
    def retry_after_seconds(self) -> float | None:
        """What the server's `Retry-After` says; `None` without one."""
        return _retry_after(self._response.headers.get("retry-after"))

    async def read(self) -> bytes:
        """The next piece of the body as it comes, b"" at its end.

        Raises UpstreamError when it is cut or stalls.
        """
        content = self._response.content
        try:
            piece = content.read_nowait()
            if not piece and not content.at_eof():
                async with asyncio.timeout_at(self._read_by):
                    piece = await content.readany()
        except TimeoutError as exc:
            raise _late(self._phase) from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise UpstreamError(
                "the model server broke its answer off", code="upstream_cut"
            ) from exc
        self._phase = "stream"
        now = asyncio.get_running_loop().time()
        if now > self._deadline:
            raise _late(self._phase)
        self._read_by = min(now + self._idle_seconds, self._deadline)
        return piece

    async def whole(self) -> bytes:
        """The whole body; of an error, its beginning."""
        limit = MAX_ANSWER_BYTES if self.status == 200 else _MAX_ERROR_BYTES
        body = bytearray()
        while piece := await self.read():
            body += piece
            if len(body) > limit:
                if self.status != 200:
                    break
                raise UpstreamProtocolError("the answer of the model server is too large")
        return bytes(body)


def _late(phase: Phase) -> UpstreamTimeoutError:
    if phase == "stream":
        return UpstreamTimeoutError("the model server stopped in its answer", phase="stream")
    return UpstreamTimeoutError("the model server did not answer in time", phase="first_byte")


def _retry_after(value: str | None) -> float | None:
    """Seconds out of a `Retry-After` header, a number or a date; `None` for nonsense."""
    if value is None:
        return None
    try:
        seconds = (
            float(value) if value.isdecimal() else parsedate_to_datetime(value).timestamp() - time()
        )
    except ValueError:
        return None
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER_SECONDS)

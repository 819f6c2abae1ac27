"""Asking a model server over HTTP: bounded in time and size, no redirects, errors translated."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import httpx

from apps.core.errors import UpstreamError
from apps.fleet.egress import guarded_transport
from apps.fleet.sightings import Reason

MAX_ANSWER_BYTES = 4 * 1024 * 1024
CONNECT_SECONDS = 2.0


class AskError(UpstreamError):
    """A server could not be asked; `reason` has the code and its parameters.

    `was_sent` is False when the server cannot have seen the request.
    """

    def __init__(self, code: str, *, was_sent: bool = True, **params: object) -> None:
        super().__init__(code)
        self.reason: Reason = {"code": code, **params}
        self.was_sent = was_sent


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of an answer that came whole."""

    status: int
    body: bytes

    @property
    def is_ok(self) -> bool:
        """True for 200."""
        return self.status == httpx.codes.OK

    @property
    def text(self) -> str:
        """The body as text; Triton's `{"error": …}` is unwrapped."""
        text = self.body.decode(errors="replace")
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return str(found["error"]) if isinstance(found, dict) and "error" in found else text

    def json(self) -> Any:
        """The body as JSON; raises AskError."""
        try:
            return json.loads(self.body)
        except ValueError as exc:
            raise AskError("bad_answer") from exc


@asynccontextmanager
async def asking() -> AsyncIterator[httpx.AsyncClient]:
    """A client for one round of questions, with as many connections as it takes."""
    async with httpx.AsyncClient(
        transport=guarded_transport(_tls()), follow_redirects=False, trust_env=False
    ) as client:
        yield client


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Made once: reading the certificates takes longer than most questions."""
    return ssl.create_default_context()


async def ask(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    *,
    seconds: float,
    headers: Mapping[str, str] | None = None,
    body: object = None,
) -> Answer:
    """The answer, whatever its status; `seconds` is for all of it.

    Raises AskError: `connect_failed`, `timed_out`, `broken_off`, `redirected` or `too_large`.
    """
    timeout = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
    request = client.build_request(method, url, headers=headers, json=body, timeout=timeout)
    try:
        async with asyncio.timeout(seconds):
            return await _send(client, request)
    except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
        raise AskError("connect_failed", was_sent=False) from exc
    except (httpx.TimeoutException, TimeoutError) as exc:
        raise AskError("timed_out", seconds=seconds) from exc
    except httpx.HTTPError as exc:
        raise AskError("broken_off") from exc


async def _send(client: httpx.AsyncClient, request: httpx.Request) -> Answer:
    response = await client.send(request, stream=True)
    try:
        if response.is_redirect:
            raise AskError("redirected", status=response.status_code)
        return Answer(response.status_code, await _read(response))
    finally:
        await response.aclose()


async def _read(response: httpx.Response) -> bytes:
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise AskError("too_large", bytes=MAX_ANSWER_BYTES)
        chunks.append(chunk)
    return b"".join(chunks)

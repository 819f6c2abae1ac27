"""Fetching the metrics pages of many servers at once, each within its bounds."""

import asyncio
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from time import time

import httpx

from apps.fleet.egress import guarded_transport

MAX_BODY_BYTES = 4 * 1024 * 1024
CONNECT_SECONDS = 1.0
TOTAL_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Target:
    """A metrics page; `api_key` is "" where none may be sent."""

    server_id: int
    url: str
    api_key: str = ""


@dataclass(frozen=True, slots=True)
class Scrape:
    """What came back. `error` is a code, "" for a success; `text` is then the page.

    Codes: `timeout`, `connect_failed`, `redirected`, `http_<status>`, `too_large`,
    `not_plain_text`, `broken_answer`.
    """

    server_id: int
    # Seconds since 1970, when the answer was complete.
    at: float
    seconds: float
    text: str = ""
    error: str = ""


class _RefusedError(Exception):
    """The answer is not one that we read; the message is the code."""


async def scrape_all(
    targets: Iterable[Target], transport: httpx.AsyncBaseTransport | None = None
) -> list[Scrape]:
    """Every target's page or error, in the order given, within `TOTAL_SECONDS`.

    `transport` replaces the network in tests.
    """
    client = httpx.AsyncClient(
        transport=transport or guarded_transport(_tls()),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(TOTAL_SECONDS, connect=CONNECT_SECONDS),
        headers={"Accept": "text/plain", "Accept-Encoding": "identity"},
    )
    async with client:
        return await asyncio.gather(*(_scrape(client, target) for target in targets))


async def _scrape(client: httpx.AsyncClient, target: Target) -> Scrape:
    started = time()
    text, error = "", ""
    try:
        async with asyncio.timeout(TOTAL_SECONDS):
            text = await _page(client, target)
    except (TimeoutError, httpx.TimeoutException):
        error = "timeout"
    except httpx.ConnectError:
        error = "connect_failed"
    except (httpx.HTTPError, httpx.InvalidURL):
        error = "broken_answer"
    except _RefusedError as exc:
        error = str(exc)
    now = time()
    return Scrape(target.server_id, at=now, seconds=now - started, text=text, error=error)


async def _page(client: httpx.AsyncClient, target: Target) -> str:
    headers = {"Authorization": f"Bearer {target.api_key}"} if target.api_key else {}
    async with client.stream("GET", target.url, headers=headers) as response:
        _check(response)
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise _RefusedError("too_large")
    return body.decode("utf-8", errors="replace")


def _check(response: httpx.Response) -> None:
    if response.is_redirect:
        raise _RefusedError("redirected")
    if response.status_code != httpx.codes.OK:
        raise _RefusedError(f"http_{response.status_code}")
    kind = response.headers.get("Content-Type", "")
    # What is packed although we asked for plain text could unpack to anything.
    if "html" in kind or response.headers.get("Content-Encoding", "identity") != "identity":
        raise _RefusedError("not_plain_text")


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Made once a process: reading the certificates takes 20 ms."""
    return httpx.create_ssl_context(trust_env=False)

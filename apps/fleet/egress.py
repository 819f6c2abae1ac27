"""Connections to model servers, refused at the last moment where the address may not be called.

A name is checked when it is saved (`addresses`), but may stand for another address later. So each
connection looks at the address that it is about to be made to.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from ipaddress import ip_address

import httpcore
import httpx
from aiohttp import AddrInfoType
from httpcore import SOCKET_OPTION

from apps.fleet.addresses import may_call, unmapped


class AddressNotAllowedError(OSError):
    """The name stands for an address that must not be called."""


def guarded_socket(found: AddrInfoType) -> socket.socket:
    """An unconnected socket, as aiohttp asks for it; raises AddressNotAllowedError."""
    family, kind, protocol, _name, address = found
    _require_allowed(str(address[0]))
    opened = socket.socket(family, kind, protocol)
    opened.setblocking(False)
    return opened


def guarded_transport(tls: ssl.SSLContext) -> httpx.AsyncHTTPTransport:
    """httpx's transport, with connections that are checked, as many as it takes."""
    transport = httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=httpx.Limits())
    # httpx has no parameter for it.
    transport._pool._network_backend = _GuardedBackend()
    return transport


class _GuardedBackend(httpcore.AsyncNetworkBackend):
    """Resolves names itself, so that what is checked is what is called."""

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's own name
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as exc:
            raise httpcore.ConnectError(f"no address is known for {host}") from exc
        failure: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for address in dict.fromkeys(str(item[4][0]) for item in found):
            try:
                _require_allowed(address)
            except AddressNotAllowedError as exc:
                raise httpcore.ConnectError(str(exc)) from exc
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                failure = exc
        raise failure or httpcore.ConnectError(f"no address is known for {host}")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


def _require_allowed(address: str) -> None:
    plain = unmapped(ip_address(address.partition("%")[0]))
    if not may_call(plain):
        raise AddressNotAllowedError(f"{plain} may not be called")

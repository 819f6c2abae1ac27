"""Looking at many servers at once. Nothing here touches the database."""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import timedelta

import httpx
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from apps.core.secrets import decrypt
from apps.fleet.asking import AskError, asking
from apps.fleet.engines import engine_look
from apps.fleet.models import Server
from apps.fleet.sightings import ModelSeen, Reason, ServerSeen
from apps.fleet.triton import Triton

# A server that does not let us load is asked again at times: it may have been restarted.
_ASK_CONTROL_AGAIN = timedelta(seconds=60)
_MAX_AT_ONCE = 64


def triton_of(server: Server) -> Triton:
    """The server as one to speak Triton's protocol with; raises AskError for an unreadable key."""
    return Triton(server.url, server.grpc_address, _key_of(server))


async def look_at_servers(servers: Sequence[Server]) -> list[ServerSeen]:
    """What each server says of itself, in order; a server that fails costs three seconds."""
    room = asyncio.Semaphore(_MAX_AT_ONCE)
    async with asking() as http:

        async def look(server: Server) -> ServerSeen:
            async with room:
                return await _look_at(http, server)

        return await asyncio.gather(*map(look, servers))


async def look_at_repositories(servers: Sequence[Server]) -> list[ServerSeen]:
    """The models of each Triton, in order."""
    async with asking() as http:
        return await asyncio.gather(
            *(_seen(server, _repository(http, server)) for server in servers)
        )


async def _look_at(http: httpx.AsyncClient, server: Server) -> ServerSeen:
    if server.is_triton:
        return await _seen(server, _triton_look(http, server))
    return await _seen(server, _engine_look(http, server))


async def _seen(server: Server, look: Awaitable[ServerSeen]) -> ServerSeen:
    try:
        return await look
    except AskError as exc:
        return ServerSeen(server.pk, failure=exc.reason)


async def _engine_look(http: httpx.AsyncClient, server: Server) -> ServerSeen:
    return await engine_look(http, server, _key_of(server))


async def _repository(http: httpx.AsyncClient, server: Server) -> ServerSeen:
    return ServerSeen(server.pk, models=await triton_of(server).index(http))


async def _triton_look(http: httpx.AsyncClient, server: Server) -> ServerSeen:
    triton = triton_of(server)
    metadata = await triton.metadata(http)
    complaint: Reason = {}
    models: dict[str, ModelSeen] | None = None
    try:
        models = await triton.index(http)
    except AskError as exc:
        if exc.reason["code"] != "access_refused":
            raise
        complaint = {"code": "repository_refused"}
    return ServerSeen(
        server.pk,
        complaint=complaint,
        engine_version=metadata.version,
        extensions=metadata.extensions,
        may_control=await triton.may_control(http) if _asks_control(server) else None,
        models=models,
    )


def _asks_control(server: Server) -> bool:
    if server.control_mode == Server.ControlMode.EXPLICIT:
        return False
    asked = server.control_checked_at
    return asked is None or timezone.now() >= asked + _ASK_CONTROL_AGAIN


def _key_of(server: Server) -> str:
    try:
        return decrypt(server.api_key_encrypted)
    except ImproperlyConfigured as exc:
        raise AskError("key_unreadable", was_sent=False) from exc

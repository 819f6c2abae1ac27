"""Which ASGI application answers which path."""

from typing import Any, cast

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.urls import path, re_path

from apps.gateway.asgi import GatewayApplication
from apps.metrics.consumers import LiveConsumer


async def _no_such_socket(_scope: Any, receive: Any, send: Any) -> None:
    """Refuse the handshake; Channels' own router would raise."""
    await receive()
    await send({"type": "websocket.close", "code": 4404})


# Typed loosely: Channels routes ASGI applications through Django's path(), whose stub knows views.
_SOCKETS: list[Any] = [
    path("ws/live/", cast(Any, LiveConsumer.as_asgi())),
    re_path("", cast(Any, _no_such_socket)),
]


_GATEWAY_PREFIX = "/v1/"
_PROBES = {"/healthz", "/readyz", "/metrics"}


def build_application(django_application: Any) -> Any:
    """Sockets by path; then HTTP: the gateway's prefix to the gateway, the rest to Django.

    `SERVE` keeps one of the two out of this process: its paths are answered with 404.
    """
    gateway = GatewayApplication()
    sockets = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(_SOCKETS)))
    http = _http(gateway, django_application, settings.SERVE)
    by_type = ProtocolTypeRouter({"http": http, "websocket": sockets})

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _live(gateway, receive, send)
        else:
            await by_type(scope, receive, send)

    return application


def _http(gateway: GatewayApplication, django_application: Any, serve: str) -> Any:
    if serve not in {"all", "gateway", "console"}:
        raise ImproperlyConfigured("INFERADMIN_SERVE must be all, gateway or console")

    async def by_path(scope: Any, receive: Any, send: Any) -> None:
        path: str = scope["path"]
        if path.startswith(_GATEWAY_PREFIX):
            chosen = _not_here if serve == "console" else gateway
        else:
            chosen = _not_here if serve == "gateway" and path not in _PROBES else django_application
        await chosen(scope, receive, send)

    return by_path


async def _not_here(_scope: Any, _receive: Any, send: Any) -> None:
    """Answer for a path that another process of the installation serves."""
    body = b"this process does not serve this path (INFERADMIN_SERVE)\n"
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _live(gateway: GatewayApplication, receive: Any, send: Any) -> None:
    """The server's start and stop: the gateway's background tasks belong in between."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await gateway.start()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await gateway.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return

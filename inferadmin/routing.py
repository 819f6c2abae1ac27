"""Which ASGI application answers which path."""

from typing import Any, cast

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import path

from apps.metrics.consumers import LiveConsumer

# Typed loosely: Channels routes ASGI applications through Django's path(), whose stub knows views.
_SOCKETS: list[Any] = [
    path("ws/live/", cast(Any, LiveConsumer.as_asgi())),
]


def build_application(django_application: Any) -> Any:
    """Sockets by path, then HTTP: the gateway's prefixes to the gateway, the rest to Django."""
    return ProtocolTypeRouter(
        {
            "http": django_application,
            "websocket": AllowedHostsOriginValidator(
                AuthMiddlewareStack(URLRouter(_SOCKETS)),
            ),
        }
    )

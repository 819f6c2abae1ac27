"""Which ASGI application answers which path."""

from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator


def build_application(django_application: Any) -> Any:
    """Sockets by path, then HTTP: the gateway's prefixes to the gateway, the rest to Django."""
    return ProtocolTypeRouter(
        {
            "http": django_application,
            "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter([]))),
        }
    )

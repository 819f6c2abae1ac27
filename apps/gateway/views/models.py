"""`GET /v1/models` and `/v1/models/{id}`: the models that the key may use."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from apps.gateway.desk import route_for
from apps.gateway.snapshot import RouteRow
from apps.gateway.views.dispatch import GatewayRequest, GatewayView


class ModelList(GatewayView):
    """All of them, by name."""

    async def get(self, request: Request) -> HttpResponseBase:
        plain: GatewayRequest = request._request  # type: ignore[assignment]  # `asgi.py` made it
        routes = plain.runtime.keeper.current().routes.values()
        mine = sorted(filter(plain.key.may_use, routes), key=lambda route: route.name)
        return Response({"object": "list", "data": [_shown(route) for route in mine]})


class ModelDetail(GatewayView):
    """One of them; names may hold slashes."""

    async def get(self, request: Request, name: str) -> HttpResponseBase:
        plain: GatewayRequest = request._request  # type: ignore[assignment]  # `asgi.py` made it
        return Response(_shown(route_for(plain.runtime.keeper.current(), plain.key, name)))


def _shown(route: RouteRow) -> dict[str, Any]:
    return {"id": route.name, "object": "model", "created": route.created, "owned_by": "inferadmin"}

"""Anthropic's `POST /v1/messages` and `/v1/messages/count_tokens`."""

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from apps.gateway.desk import route_for
from apps.gateway.fronts.anthropic import AnthropicFront
from apps.gateway.views.dispatch import GatewayRequest, GatewayView
from apps.gateway.views.generation import GenerationView


class Messages(GenerationView):
    """A message, whole or streamed."""

    front = AnthropicFront()


class CountTokens(GatewayView):
    """About how many tokens a prompt has: what would be held for it, never too few."""

    front = AnthropicFront(is_counting=True)

    async def post(self, request: Request) -> HttpResponseBase:
        plain: GatewayRequest = request._request  # type: ignore[assignment]  # `asgi.py` made it
        order = self.front.order_of(request.data, request.headers)
        route_for(plain.runtime.keeper.current(), plain.key, order.model)
        return Response(
            {"input_tokens": order.input_tokens_held}, headers={"x-inferadmin-estimated": "true"}
        )

"""`POST /v1/chat/completions`, `/v1/completions` and `/v1/embeddings`."""

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from apps.gateway.call import Call
from apps.gateway.desk import admit
from apps.gateway.fronts.openai import OpenAiFront
from apps.gateway.relay import Relay
from apps.gateway.views.dispatch import GatewayRequest, GatewayView
from apps.gateway.wishes import wishes_of


class GenerationView(GatewayView):
    """Understand, admit, relay; `front` says what."""

    async def post(self, request: Request) -> HttpResponseBase:
        plain: GatewayRequest = request._request  # type: ignore[assignment]  # `asgi.py` made it
        order = self.front.order_of(request.data, request.headers)
        call = await admit(plain.runtime, order, plain.key, plain.request_id, wishes_of(plain.META))
        relay = Relay(plain.runtime, call, self.front)
        if order.is_stream:
            events = await relay.open()
            return StreamingHttpResponse(
                events,
                content_type="text/event-stream; charset=utf-8",
                headers={**_headers(call), "cache-control": "no-cache", "x-accel-buffering": "no"},
            )
        answer = await relay.answer()
        return HttpResponse(
            self.front.whole(order, answer),
            content_type="application/json",
            headers={**_headers(call), **answer.headers},
        )


class ChatCompletions(GenerationView):
    """Chat: messages in, a message out."""

    front = OpenAiFront("chat.completions")


class Completions(GenerationView):
    """Legacy completions: a text in, its continuation out."""

    front = OpenAiFront("completions")


class Embeddings(GenerationView):
    """Texts in, vectors out."""

    front = OpenAiFront("embeddings")


def _headers(call: Call) -> dict[str, str]:
    target = {} if call.target is None else {"x-inferadmin-target": call.target.label}
    return {**target, **call.standing.headers()}

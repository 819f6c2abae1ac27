"""REST framework's view, awaited: the one place where its synchronous `dispatch` is replaced."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, ClassVar, cast

import orjson
from django.core.handlers.asgi import ASGIRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.gateway.authentication import HoldsKey, KeyAuthentication, key_of
from apps.gateway.errors import exception_handler
from apps.gateway.fronts.contract import Front
from apps.gateway.fronts.openai import OpenAiFront
from apps.gateway.runtime import Runtime
from apps.gateway.snapshot import KeyRow

AsyncView = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


class GatewayRequest(ASGIRequest):
    """A request with what `asgi.py` knows of it; `key` is set when its view has found it."""

    runtime: Runtime
    request_id: str
    key: KeyRow


class FastJsonParser(BaseParser):
    """Bodies are JSON, whatever the content type says: curl calls them a form."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        del media_type, parser_context
        try:
            return orjson.loads(stream.read())
        except orjson.JSONDecodeError as exc:
            raise ParseError(f"the body is not valid JSON: {exc}") from exc


class FastJsonRenderer(BaseRenderer):
    """JSON by orjson."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, media_type: Any = None, renderer_context: Any = None) -> bytes:
        del media_type, renderer_context
        return orjson.dumps(data)


class OneFormat(BaseContentNegotiation):
    """Nothing to negotiate: JSON in and out, whatever the headers say.

    REST framework's own compares media types for 50 µs of CPU a request.
    """

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        del request
        return next(iter(parsers))

    def select_renderer(  # type: ignore[override]  # the stub knows no suffix of None
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        del request, format_suffix
        return renderers[0], renderers[0].media_type


class GatewayView(APIView):
    """A view for holders of a key. Handlers are coroutines."""

    authentication_classes: Sequence[type[KeyAuthentication]] = [KeyAuthentication]
    permission_classes = [HoldsKey]
    throttle_classes = []  # limits are held in Redis, by the request's worth
    parser_classes = [FastJsonParser]
    renderer_classes = [FastJsonRenderer]
    content_negotiation_class = OneFormat
    versioning_class = None
    # Its format, also for errors.
    front: ClassVar[Front] = OpenAiFront("chat.completions")

    async def dispatch(  # type: ignore[override]  # the coroutine is the point
        self, request: GatewayRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """As APIView's, with the key looked up first and the handler awaited."""
        self.args, self.kwargs = args, kwargs
        drf_request = self.initialize_request(request, *args, **kwargs)
        self.request = drf_request
        self.headers = {}
        try:
            request.key = await key_of(request.META, request.runtime.keyring)
            self.initial(drf_request, *args, **kwargs)
            response = await self._handler(drf_request)(drf_request, *args, **kwargs)
        except Exception as exc:  # noqa: BLE001  # the edge: every error becomes an answer
            response = self.handle_exception(exc)
        self.response = self.finalize_response(
            drf_request,
            cast(Response, response),  # or any other of Django's
            *args,
            **kwargs,
        )
        return self.response

    def _handler(self, request: Request) -> AsyncView:
        name = (request.method or "").lower()
        handler: AsyncView | None = None
        if name in self.http_method_names:
            handler = getattr(self, name, None)
        return handler or _not_allowed(self)

    def get_exception_handler(self) -> Callable[[Exception, Any], Any]:
        return exception_handler


def _not_allowed(view: GatewayView) -> AsyncView:
    async def refuse(request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        view.headers = {"Allow": ", ".join(view.allowed_methods)}
        return view.http_method_not_allowed(request, *args, **kwargs)

    return refuse


def as_awaitable(view_class: type[GatewayView]) -> AsyncView:
    """The view as a function, one instance a request; CSRF has no place without cookies."""

    async def view(request: GatewayRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        instance = view_class()
        instance.setup(request, *args, **kwargs)
        return await instance.dispatch(request, *args, **kwargs)

    return view

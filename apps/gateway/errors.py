"""Errors of the gateway, and how they look to a client of OpenAI's API."""

from collections.abc import Mapping
from typing import Any

import structlog
from rest_framework import exceptions
from rest_framework.response import Response

from apps.core.errors import (
    AuthenticationError,
    InferAdminError,
    InvalidRequestError,
    NoCapacityError,
    QuotaExceededError,
    UpstreamError,
)

log = structlog.get_logger(__name__)

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
    504: "timeout_error",
}
_DRF_CODES = {
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.ParseError: "malformed_json",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
}
# Errors that always speak of the same field.
_FIELDS = {"model_not_found": "model", "model_not_allowed": "model"}
_CLOSING_STATUSES = {413}


class RequestRefusedError(InferAdminError):
    """A model server says that the request itself is wrong; another would say the same."""

    status = 400
    code = "request_refused"

    def __init__(self, message: str, *, upstream_status: int, param: str | None = None) -> None:
        super().__init__(message)
        self.upstream_status = upstream_status
        self.param = param


class UpstreamBusyError(UpstreamError):
    """A model server has no room now; told to the client as 503."""

    status = 503
    code = "upstream_busy"

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        # The server itself has said when to come back.
        self.is_told = retry_after_seconds is not None
        self.retry_after_seconds = retry_after_seconds or 1


class ModelNotLoadedError(NoCapacityError):
    """No target of the route has its model loaded."""

    code = "model_not_loaded"


class BodyTooLargeError(InferAdminError):
    """The body passes the limit of the installation."""

    status = 413
    code = "body_too_large"


class BodyTooSlowError(InferAdminError):
    """The body did not come in time."""

    status = 408
    code = "body_timeout"


class _ForeignError(InferAdminError):
    """An exception of REST framework."""

    def __init__(self, exc: exceptions.APIException) -> None:
        super().__init__(str(exc.detail), code=_DRF_CODES.get(type(exc), "invalid_request"))
        self.foreign_status = exc.status_code


def http_status(error: InferAdminError) -> int:
    """Status that the client sees."""
    if isinstance(error, RequestRefusedError):
        return error.upstream_status
    return error.foreign_status if isinstance(error, _ForeignError) else error.status


def envelope(error: InferAdminError) -> dict[str, Any]:
    """The error as OpenAI's API tells it: message, type, param and code."""
    status = http_status(error)
    kind = _TYPES.get(status, "api_error")
    if isinstance(error, QuotaExceededError) and error.code == "budget_exceeded":
        kind = "insufficient_quota"
    return {
        "error": {
            "message": error.message,
            "type": kind,
            "param": _param(error),
            "code": error.code,
        }
    }


def error_headers(error: InferAdminError) -> dict[str, str]:
    """Headers that go with the error: when to come back, and not to reuse a half-read request."""
    # Limits tell how they stand.
    headers: dict[str, str] = dict(getattr(error, "headers", {}))
    retry_after = getattr(error, "retry_after_seconds", None)
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, round(retry_after)))
    if isinstance(error, AuthenticationError):
        headers["WWW-Authenticate"] = 'Bearer realm="inferadmin"'
    if error.status in _CLOSING_STATUSES:
        headers["Connection"] = "close"
    return headers


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's hook: an answer for every exception; what we do not know is logged and becomes 500.

    The view's front says how it looks.
    """
    error = _translated(exc)
    return Response(
        context["view"].front.error(error), status=http_status(error), headers=error_headers(error)
    )


def _translated(exc: Exception) -> InferAdminError:
    if isinstance(exc, InferAdminError):
        return exc
    if isinstance(exc, exceptions.APIException):
        return _ForeignError(exc)
    log.error("gateway.request_crashed", exc_info=exc)
    return InferAdminError("the gateway failed on this request; its log says why")


def _param(error: InferAdminError) -> str | None:
    if isinstance(error, RequestRefusedError):
        return error.param
    if isinstance(error, InvalidRequestError):
        return next(iter(error.fields), None)
    return _FIELDS.get(error.code)

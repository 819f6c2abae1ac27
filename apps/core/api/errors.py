"""REST answers for errors: `{"error": {"code", "message", "fields"?}}`."""

from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from apps.core.api.parsers import BodyTooLarge
from apps.core.errors import InferAdminError, InvalidRequestError

_CODES = {
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.AuthenticationFailed: "invalid_token",
    exceptions.PermissionDenied: "permission_denied",
    exceptions.NotFound: "not_found",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.ParseError: "malformed_json",
    BodyTooLarge: "body_too_large",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "throttled",
}


def _body(code: str, message: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message}
    if fields:
        error["fields"] = fields
    return {"error": error}


def _flat(detail: Any, prefix: str = "") -> dict[str, list[str]]:
    """DRF's nested error detail as `{"targets.0.weight": ["…"]}`."""
    if isinstance(detail, dict):
        parts = (
            (f"{prefix}.{key}" if prefix else str(key), value) for key, value in detail.items()
        )
    elif isinstance(detail, list) and any(isinstance(item, dict) for item in detail):
        parts = ((f"{prefix}.{index}", value) for index, value in enumerate(detail))
    else:
        items = detail if isinstance(detail, list) else [detail]
        return {prefix or "non_field_errors": [str(item) for item in items]} if items else {}
    flat: dict[str, list[str]] = {}
    for name, value in parts:
        flat |= _flat(value, name)
    return flat


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Answer for what we know; `None` leaves an unknown exception to become a 500."""
    del context
    if isinstance(exc, InferAdminError):
        fields = exc.fields if isinstance(exc, InvalidRequestError) else None
        response = Response(_body(exc.code, exc.message, fields), status=exc.status)
        retry_after = getattr(exc, "retry_after_seconds", None)
        if retry_after is not None:
            response["Retry-After"] = str(max(1, round(retry_after)))
        return response
    if isinstance(exc, DjangoValidationError):
        fields = (
            exc.message_dict if hasattr(exc, "error_dict") else {"non_field_errors": exc.messages}
        )
        return Response(_body("invalid_request", _summary(fields), fields), status=400)
    if isinstance(exc, Http404):
        return Response(_body("not_found", "there is no such object"), status=404)
    if isinstance(exc, exceptions.ValidationError):
        fields = _flat(exc.detail)
        return Response(_body("invalid_request", _summary(fields), fields), status=400)
    if isinstance(exc, exceptions.APIException):
        response = Response(
            _body(_CODES.get(type(exc), "invalid_request"), str(exc.detail)), status=exc.status_code
        )
        auth_header = getattr(exc, "auth_header", None)
        if auth_header:
            response["WWW-Authenticate"] = auth_header
        return response
    return None


def _summary(fields: dict[str, list[str]]) -> str:
    return "; ".join(f"{name}: {' '.join(messages)}" for name, messages in fields.items())

"""What the failure of a model server means to the caller, and whether another may be tried."""

import re
from typing import Any
from urllib.parse import urlsplit

import orjson

from apps.core.errors import InferAdminError, InvalidRequestError, UpstreamError
from apps.gateway.errors import RequestRefusedError, UpstreamBusyError
from apps.gateway.orders import Order
from apps.gateway.snapshot import TargetRow

# The caller's mistake: no other target would take it either.
_CLIENT_FAULTS = {400, 413, 415, 422}
# What a refusal says that means our account or key, whatever its status. Messages may quote the
# request, so only how they begin counts: no caller can make a target look misconfigured.
_ACCOUNT_CODES = {"insufficient_quota", "api_key_invalid"}
_ACCOUNT_MESSAGES = ("your credit balance is too low", "api key not valid")
# It works, but not now.
_BUSY = {429, 503, 529}
NOT_IMPLEMENTED = 501
_MAX_MESSAGE = 300
_HIDDEN = "***"
_ANY_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'<>)\]]+", re.IGNORECASE)


def endpoint_not_answered(order: Order) -> InvalidRequestError:
    """What 501 means on any endpoint: the server works, but does not offer this."""
    path = f"/v1/{order.endpoint.replace('.', '/')}"
    return InvalidRequestError(
        f"the model “{order.model}” does not answer {path}",
        code="endpoint_not_supported",
        fields={"model": [f"does not answer {path}"]},
    )


def failure_of_status(
    target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None
) -> InferAdminError:
    """The usual meaning of a status of an OpenAI-compatible server."""
    if _is_about_account(body):
        return _misconfigured(status)
    if status in _CLIENT_FAULTS:
        message, param = _told(body)
        return RequestRefusedError(
            scrubbed(message, target) or f"the model refused the request (status {status})",
            upstream_status=status,
            param=param,
        )
    if status in _BUSY:
        return UpstreamBusyError(
            f"the model server is busy (status {status}); try again later",
            retry_after_seconds=retry_after_seconds,
        )
    if status in {401, 402, 403, 404}:
        return _misconfigured(status)
    return UpstreamError(f"the model server failed (status {status})")


def _misconfigured(status: int) -> UpstreamError:
    return UpstreamError(
        "the model server does not accept the gateway's configuration "
        f"(status {status}); this is not a fault of your request or key",
        code="upstream_misconfigured",
    )


def failure_in_stream(error: object) -> UpstreamError:
    """The failure that a server reports inside a 200. Its text is not passed on."""
    kind = error.get("type") if isinstance(error, dict) else None
    if isinstance(kind, str) and "overloaded" in kind:
        return UpstreamError("the model server is overloaded", code="upstream_busy")
    return UpstreamError("the model server reported an error in the middle of its answer")


def scrubbed(message: str, target: TargetRow) -> str:
    """A server's message without its secret, its address and other URLs, cut to a sane length."""
    if target.server.secret:
        message = message.replace(target.server.secret, _HIDDEN)
    message = _ANY_URL.sub(_HIDDEN, message)
    if address := urlsplit(target.server.url).netloc:
        message = message.replace(address, _HIDDEN)
    return message.strip()[:_MAX_MESSAGE]


def _is_about_account(body: bytes) -> bool:
    error = _error_of(body)
    if not isinstance(error, dict):
        return False
    words = {word.lower() for name in ("code", "type") if isinstance(word := error.get(name), str)}
    message = error.get("message")
    return not words.isdisjoint(_ACCOUNT_CODES) or (
        isinstance(message, str) and message.lower().startswith(_ACCOUNT_MESSAGES)
    )


def _error_of(body: bytes) -> object:
    """The error in a body: an object, a text, or `None` for no JSON."""
    try:
        raw: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return raw.get("error", raw) if isinstance(raw, dict) else None


def _told(body: bytes) -> tuple[str, str | None]:
    """Message and param of an error body: OpenAI's, FastAPI's or Triton's shape; "" for none."""
    error = _error_of(body)
    if isinstance(error, str):
        return error, None
    if not isinstance(error, dict):
        return "", None
    message = error.get("message") or error.get("detail")
    param = error.get("param")
    return (
        message if isinstance(message, str) else "",
        param if isinstance(param, str) else None,
    )

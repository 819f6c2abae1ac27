"""What both Triton adapters share: URLs with a pinned version, and the meaning of failures.

Triton answers some mistakes of a client with 500 and some failures of its own with 400, so the
text decides. Its texts can hold paths and tracebacks and are never passed on whole.
"""

from urllib.parse import quote

from apps.core.errors import InferAdminError, InvalidRequestError, UpstreamError
from apps.gateway.adapters.failures import failure_of_status, scrubbed
from apps.gateway.errors import UpstreamBusyError
from apps.gateway.snapshot import TargetRow

_NOT_LOADED = (b"unknown model", b"is not found", b"is not ready", b"no available versions")
_BUSY = (b"exceeds maximum queue size", b"request timeout expired")
_BAD_VALUE = (b"unable to parse", b"attempt to access json")


def triton_url(target: TargetRow, verb: str) -> str:
    """URL of a verb of the model, with the target's version where it names one."""
    version = "" if target.version is None else f"/versions/{target.version}"
    model = quote(target.upstream_model, safe="")
    return f"{target.server.url.rstrip('/')}/v2/models/{model}{version}/{verb}"


def triton_headers(target: TargetRow) -> dict[str, str]:
    """Headers of a request; a proxy in front of Triton may want a bearer token."""
    headers = {"content-type": "application/json"}
    if target.server.secret:
        headers["authorization"] = f"Bearer {target.server.secret}"
    return headers


def triton_failure(
    target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None = None
) -> InferAdminError:
    """The error that a status and a text of Triton stand for."""
    text = body[:4096].lower()
    if any(words in text for words in _NOT_LOADED):
        return UpstreamError("the model is not loaded on its server", code="model_not_loaded")
    if any(words in text for words in _BUSY):
        return UpstreamBusyError(
            "the queue of the model is full; try again later",
            retry_after_seconds=retry_after_seconds,
        )
    if any(words in text for words in _BAD_VALUE):
        return InvalidRequestError("a parameter of the request has the wrong type for this model")
    if status == 400 and b"stub process" in text:
        return UpstreamError("the model has crashed on its server")
    return failure_of_status(target, status, body, retry_after_seconds)


def triton_failure_in_answer(target: TargetRow, message: str) -> UpstreamError:
    """The error that `{"error": message}` inside a 200 stands for."""
    found = triton_failure(target, 500, message.encode())
    if isinstance(found, UpstreamError) and found.code != UpstreamError.code:
        return found
    first_line = scrubbed(message.partition("\n")[0], target)
    return UpstreamError(f"the model failed: {first_line}")

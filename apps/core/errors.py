"""The tree of errors that domain code raises.

    InferAdminError            code, status, a message that is safe to show
    ├── InvalidRequestError    400   fields: what is wrong with each
    ├── AuthenticationError    401
    ├── PermissionDeniedError  403
    ├── NotFoundError          404
    ├── ConflictError          409
    ├── QuotaExceededError     429   retry_after_seconds
    ├── UpstreamError          502   may_retry
    │   ├── UpstreamTimeoutError   504   phase: connect, first_byte or stream
    │   └── UpstreamProtocolError  502
    └── NoCapacityError        503   retry_after_seconds

They are turned into answers at three edges only: `core/api/errors.py` (REST), `gateway/errors.py`
(the caller's own format) and the console's middleware. `docs/errors.md` lists every code.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal


class InferAdminError(Exception):
    """Base of all errors that may be told to a client."""

    status: ClassVar[int] = 500
    code = "internal_error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        """`message` is shown to the caller: it holds no secret, path or stack trace."""
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class InvalidRequestError(InferAdminError):
    """The request cannot be understood; `fields` says per field what to change."""

    status = 400
    code = "invalid_request"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        fields: Mapping[str, list[str]] | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.fields = dict(fields or {})

    @classmethod
    def of(cls, field: str, problem: str) -> "InvalidRequestError":
        """The error of one field; `problem` says what to change."""
        return cls(f"{field}: {problem}", fields={field: [problem]})


class AuthenticationError(InferAdminError):
    """No key, a wrong key, or one that is expired or revoked."""

    status = 401
    code = "invalid_api_key"


class PermissionDeniedError(InferAdminError):
    """The caller is known but may not do this."""

    status = 403
    code = "permission_denied"


class NotFoundError(InferAdminError):
    """The thing does not exist, or the caller may not know that it does."""

    status = 404
    code = "not_found"


class ConflictError(InferAdminError):
    """Somebody else changed or holds the thing."""

    status = 409
    code = "conflict"


class QuotaExceededError(InferAdminError):
    """A limit or budget is used up until `retry_after_seconds` have passed."""

    status = 429
    code = "quota_exceeded"

    def __init__(
        self, message: str, *, code: str | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after_seconds = retry_after_seconds


class UpstreamError(InferAdminError):
    """A model server failed; `may_retry` says whether another target may be tried."""

    status = 502
    code = "upstream_failed"

    def __init__(self, message: str, *, code: str | None = None, may_retry: bool = True) -> None:
        super().__init__(message, code=code)
        self.may_retry = may_retry


class UpstreamTimeoutError(UpstreamError):
    """A model server did not answer in time."""

    status = 504
    code = "upstream_timeout"

    def __init__(
        self,
        message: str,
        *,
        phase: Literal["connect", "first_byte", "stream"],
        may_retry: bool = True,
    ) -> None:
        super().__init__(message, may_retry=may_retry)
        self.phase = phase


class UpstreamProtocolError(UpstreamError):
    """A model server answered something that is not its protocol."""

    code = "upstream_bad_answer"


class NoCapacityError(InferAdminError):
    """Nothing can serve this now; `retry_after_seconds` is when to come back."""

    status = 503
    code = "no_capacity"

    def __init__(
        self, message: str, *, code: str | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after_seconds = retry_after_seconds

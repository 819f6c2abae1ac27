"""Who calls the gateway: the holder of an API key."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.core.errors import AuthenticationError, PermissionDeniedError
from apps.core.secrets import digest_of
from apps.gateway.callers import Address, address_of, is_within
from apps.gateway.keyring import KeyRing
from apps.gateway.snapshot import KeyRow

PREFIX = "sk-ia-"
_MAX_LENGTH = 200


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer sk-ia-…`; `request.user` and `request.auth` are its KeyRow.

    The key was looked up before, as REST framework does not wait: see `views/dispatch.py`.
    """

    def authenticate(self, request: Request) -> tuple[KeyRow, KeyRow]:
        key: KeyRow = request._request.key  # type: ignore[attr-defined]  # GatewayRequest
        return key, key

    def authenticate_header(self, request: Request) -> str:
        del request
        return 'Bearer realm="inferadmin"'


class HoldsKey(BasePermission):
    """Asks for nothing more than a key that is good: routes are checked when they are known."""

    def has_permission(self, request: Request, view: Any) -> bool:
        del view
        return isinstance(request.user, KeyRow)


async def key_of(meta: Mapping[str, Any], keyring: KeyRing) -> KeyRow:
    """The key that a request's headers carry.

    Raises AuthenticationError saying what is wrong, PermissionDeniedError for a suspended team or a
    caller outside of the key's networks.
    """
    secret = _secret_in(meta)
    if not secret:
        raise AuthenticationError(
            "no API key: send it in the header “Authorization: Bearer sk-ia-…” or “x-api-key”",
            code="missing_api_key",
        )
    if not secret.startswith(PREFIX) or len(secret) > _MAX_LENGTH:
        raise AuthenticationError(
            f"the API key (ends in {_tail(secret)}) is not one of this gateway; "
            f"its keys start with {PREFIX}"
        )
    key = await keyring.find(digest_of(secret))
    if key is None:
        raise AuthenticationError(f"the API key (ends in {_tail(secret)}) is not known")
    _require_good(key)
    if key.networks:
        _require_within(key, address_of(meta))
    return key


def _secret_in(meta: Mapping[str, Any]) -> str:
    """Of `Authorization: Bearer`, `x-api-key` (Anthropic), `api-key` (Azure) the first one sent."""
    scheme, _space, secret = meta.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() == "bearer" and secret.strip():
        return str(secret.strip())
    return str(meta.get("HTTP_X_API_KEY") or meta.get("HTTP_API_KEY") or "").strip()


def _require_within(key: KeyRow, address: Address | None) -> None:
    if address is None or not is_within(address, key.networks):
        raise PermissionDeniedError(
            f"the API key “{key.name}” may not be used from {address or 'an unknown address'}; "
            "its manager can allow more networks",
            code="address_not_allowed",
        )


def _require_good(key: KeyRow) -> None:
    now = datetime.now(UTC)
    if key.revoked_at is not None and key.revoked_at <= now:
        raise AuthenticationError(f"the API key “{key.name}” was revoked", code="api_key_revoked")
    if key.expires_at is not None and key.expires_at <= now:
        raise AuthenticationError(
            f"the API key “{key.name}” expired at {key.expires_at:%Y-%m-%d %H:%M} UTC",
            code="api_key_expired",
        )
    if not key.is_team_active:
        raise PermissionDeniedError(
            f"the team “{key.team_name}” of this API key is suspended", code="team_suspended"
        )


def _tail(secret: str) -> str:
    """The last four characters, if that leaves enough unsaid."""
    return f"…{secret[-4:]}" if len(secret) >= 16 else "…"

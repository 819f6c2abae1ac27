"""Who calls the REST API: a management token, or the console's session."""

from typing import Any

from django.utils import timezone
from drf_spectacular.authentication import SessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from apps.core.models import ManagementToken, User
from apps.core.secrets import digest_of


class ManagementTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer mt-ia-…`; the request acts with the rights of the token's user."""

    def authenticate(self, request: Request) -> tuple[User, ManagementToken] | None:
        scheme, _space, value = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not value:
            return None
        token = (
            ManagementToken.objects.select_related("user")
            .filter(digest=digest_of(value.strip()))
            .first()
        )
        now = timezone.now()
        if (
            token is None
            or token.revoked_at is not None
            or (token.expires_at is not None and token.expires_at <= now)
            or not token.user.is_active
        ):
            raise AuthenticationFailed(
                "this management token is unknown, expired or revoked; make a new one in the admin"
            )
        if token.last_used_at is None or (now - token.last_used_at).total_seconds() > 60:
            ManagementToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        del request
        return 'Bearer realm="inferadmin"'


class ConsoleSessionAuthentication(SessionAuthentication):
    """The browser's session, with CSRF enforced."""


class ManagementTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # theirs
    """How the schema describes a management token."""

    target_class = ManagementTokenAuthentication
    name = "managementToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        del auto_schema
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A management token, `mt-ia-…`: `POST /api/v1/tokens`.",
        }


class ConsoleSessionScheme(SessionScheme):  # type: ignore[no-untyped-call]  # theirs
    """How the schema describes the console's session."""

    target_class = "apps.core.api.authentication.ConsoleSessionAuthentication"

"""Who calls the REST API: a management token, or the console's session."""

from django.utils import timezone
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

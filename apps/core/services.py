"""Actions on people and management tokens."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.models import ManagementToken, User
from apps.core.secrets import new_secret

TOKEN_KIND = "mt-ia-"  # noqa: S105 - the visible start of every token, not a secret


@transaction.atomic
def token_issue(
    *, actor: Actor, user: User, name: str, expires_at: datetime | None = None
) -> tuple[ManagementToken, str]:
    """New management token of `user` and its secret, which is shown this once."""
    secret = new_secret(TOKEN_KIND)
    token = ManagementToken.objects.create(
        user=user, name=name, prefix=secret.prefix, digest=secret.digest, expires_at=expires_at
    )
    audit_write(actor=actor, action="token.issue", target=token, after={"user": user.username})
    return token, secret.value


@transaction.atomic
def token_revoke(*, actor: Actor, token_id: int) -> ManagementToken:
    """End a token at once; safe to run twice."""
    token = ManagementToken.objects.select_for_update().get(pk=token_id)
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
        audit_write(actor=actor, action="token.revoke", target=token)
    return token

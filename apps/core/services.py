"""Actions on people and management tokens."""

from datetime import datetime
from typing import TypedDict

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.errors import ConflictError, InvalidRequestError, NotFoundError
from apps.core.models import ManagementToken, User
from apps.core.roles import Permission, Role
from apps.core.rows import row_assign, row_insert, row_locked, row_update
from apps.core.secrets import new_secret

TOKEN_KIND = "mt-ia-"  # noqa: S105 - the visible start of every token, not a secret


class UserChanges(TypedDict, total=False):
    """What `user_update` may change; what is left out stays."""

    full_name: str
    email: str
    role: str
    time_zone: str
    is_active: bool


@transaction.atomic
def token_issue(
    *, actor: Actor, user: User, name: str, expires_at: datetime | None = None
) -> tuple[ManagementToken, str]:
    """New management token of `user` and its secret, which is shown this once.

    A person makes tokens for themselves only. Raises InvalidRequestError for a moment in the past.
    """
    _require_own(actor, user)
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidRequestError.of("expires_at", "this moment has passed already")
    secret = new_secret(TOKEN_KIND)
    token = ManagementToken(
        user=user, name=name, prefix=secret.prefix, digest=secret.digest, expires_at=expires_at
    )
    row_insert(token)
    audit_write(actor=actor, action="token.issue", target=token, after={"user": user.username})
    return token, secret.value


@transaction.atomic
def token_revoke(*, actor: Actor, token_id: int) -> ManagementToken:
    """End a token at once; safe to run twice.

    Raises NotFoundError also for a token of somebody else, unless the actor administers.
    """
    token = row_locked(ManagementToken, token_id)
    if actor.user is not None and not actor.user.may(Permission.ADMINISTER):
        _require_own(actor, token.user)
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
        audit_write(actor=actor, action="token.revoke", target=token)
    return token


@transaction.atomic
def user_create(
    *, actor: Actor, username: str, password: str, role: str, full_name: str = "", email: str = ""
) -> User:
    """New person.

    Raises InvalidRequestError for a weak password, ConflictError for a name that is taken.
    """
    actor.require(Permission.ADMINISTER)
    user = User(username=username, role=role, full_name=full_name, email=email)
    _password_set(user, password)
    row_insert(user)
    after = {"role": role, "full_name": full_name, "email": email}
    audit_write(actor=actor, action="user.create", target=user, after=after)
    return user


@transaction.atomic
def user_update(*, actor: Actor, user_id: int, changes: UserChanges) -> User:
    """Change a person; inactive, neither their password nor their tokens open anything.

    Raises ConflictError when nobody would be left who administers.
    """
    actor.require(Permission.ADMINISTER)
    _admins_locked()
    user = row_locked(User, user_id)
    before = row_assign(user, changes)
    if before:
        row_update(user, list(before))
        _require_an_admin()
        after = {name: getattr(user, name) for name in before}
        audit_write(actor=actor, action="user.update", target=user, before=before, after=after)
    return user


@transaction.atomic
def user_password_set(*, actor: Actor, user_id: int, password: str) -> User:
    """Give a person a new password, which ends their sessions."""
    actor.require(Permission.ADMINISTER)
    user = row_locked(User, user_id)
    _password_set(user, password)
    user.save(update_fields=["password"])
    audit_write(actor=actor, action="user.password_set", target=user)
    return user


def _require_own(actor: Actor, user: User) -> None:
    if actor.user is not None and actor.user.pk != user.pk:
        raise NotFoundError("there is no such token of yours")


def _password_set(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as exc:
        raise InvalidRequestError(
            "; ".join(exc.messages), fields={"password": exc.messages}
        ) from exc
    user.set_password(password)


def _admins_locked() -> None:
    """Lock everybody who administers, in one order: two cannot demote each other at once."""
    list(User.objects.filter(role=Role.ADMIN).order_by("pk").select_for_update(no_key=True))


def _require_an_admin() -> None:
    if not User.objects.filter(role=Role.ADMIN, is_active=True).exists():
        raise ConflictError("nobody would be left who administers; give another person the role")

"""Writing audit entries."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import models

from apps.core.actors import Actor
from apps.core.models import AuditEntry

_SECRET_WORDS = ("secret", "password", "digest", "token_value")


def _plain(value: object) -> object:
    """The value as JSON can hold it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, models.Model):
        return str(value)
    return value


def _visible(values: Mapping[str, object]) -> dict[str, object]:
    return {
        name: "***" if any(word in name for word in _SECRET_WORDS) else _plain(value)
        for name, value in values.items()
    }


def audit_write(
    *,
    actor: Actor,
    action: str,
    target: models.Model,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Record `action` (`noun.verb`) on `target` in the caller's transaction.

    Values whose name speaks of a secret are starred out.
    """
    return AuditEntry.objects.create(
        actor=actor.user,
        actor_label=actor.label,
        action=action,
        object_type=target._meta.label_lower,
        object_id=str(target.pk),
        object_label=str(target)[:200],
        before=_visible(before or {}),
        after=_visible(after or {}),
        request_id=actor.request_id,
        source_ip=actor.source_ip,
    )


def history_of(target: models.Model, *, limit: int = 50) -> list[AuditEntry]:
    """What was done to `target`, newest first."""
    return list(
        AuditEntry.objects.filter(object_type=target._meta.label_lower, object_id=str(target.pk))[
            :limit
        ]
    )

"""Writing audit entries."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import models
from django.utils.translation import gettext as _

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


@dataclass(frozen=True, slots=True)
class Change:
    """One field of an audit entry as people read it; `before` is empty where it was new."""

    name: str
    before: str
    after: str


def changes_in(entry: AuditEntry) -> list[Change]:
    """What the entry says of each field, without fields that hold nothing on either side."""
    names = dict.fromkeys([*entry.before, *entry.after])
    changes = [
        Change(
            name.removesuffix("_id").replace("_", " "),
            _readable(entry.before.get(name)),
            _readable(entry.after.get(name)),
        )
        for name in names
    ]
    return [change for change in changes if change.before or change.after]


def _readable(value: object) -> str:
    """A JSON value in words; nothing for what is empty."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return ", ".join(_readable(item) for item in value)
    if isinstance(value, dict):
        parts = ((key, _readable(item)) for key, item in value.items())
        return " ".join(text if key == "code" else f"{key} {text}" for key, text in parts if text)
    return "" if value is None else str(value)

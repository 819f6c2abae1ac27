"""The way of a request through the gateway, step by step, as its record tells it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.billing.events import UsageAttempt
from apps.billing.models import UsageRecord

Tone = Literal["ok", "warn", "bad", "idle"]

_TONES: dict[str, Tone] = {
    UsageRecord.Status.OK: "ok",
    UsageRecord.Status.CANCELLED: "warn",
    UsageRecord.Status.PARTIAL: "warn",
    UsageRecord.Status.ERROR: "bad",
    UsageRecord.Status.LOST: "bad",
}
_ENDINGS: dict[str, Promise] = {
    UsageRecord.Status.OK: gettext_lazy("Answered in full"),
    UsageRecord.Status.CANCELLED: gettext_lazy("The client went away before the end"),
    UsageRecord.Status.PARTIAL: gettext_lazy("The answer broke off in the middle"),
    UsageRecord.Status.ERROR: gettext_lazy("Ended with an error"),
    UsageRecord.Status.LOST: gettext_lazy("The gateway's process died with it"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened. `seconds` is `None` where it was not timed."""

    tone: Tone
    title: str
    details: list[str]
    seconds: float | None = None


def steps_of(record: UsageRecord) -> list[Step]:
    """Limits, choice of target, each attempt, end; what the record does not tell is left out."""
    return [
        *_told(_("Limits checked"), record.decision.get("limits")),
        *_told(_("Targets considered"), record.decision.get("targets")),
        *_told(_("Chosen"), record.decision.get("chosen")),
        *(_attempt(number, attempt) for number, attempt in enumerate(record.attempts, start=1)),
        _ending(record),
    ]


def _told(title: str, told: object) -> Iterator[Step]:
    """A step of the decision; nothing when the gateway wrote nothing of it."""
    items = told if isinstance(told, list) else [told]
    details = [text for item in items if (text := _words(item))]
    if details:
        yield Step("idle", title, details)


def _words(item: object) -> str:
    """A part of the decision in one line: names and values as the gateway wrote them."""
    if isinstance(item, dict):
        return " · ".join(
            f"{name.replace('_', ' ')} {value}"
            for name, value in item.items()
            if value not in (None, "", [])
        )
    return "" if item is None else str(item)


def _attempt(number: int, attempt: UsageAttempt) -> Step:
    is_ok = attempt["status"] == "ok"
    title = _("Attempt %(number)s: %(model)s on %(server)s") % {"number": number, **attempt}
    problem = [attempt["error"] or attempt["status"]]
    return Step("ok" if is_ok else "bad", title, [] if is_ok else problem, attempt["seconds"])


def _ending(record: UsageRecord) -> Step:
    detail = [f"HTTP {record.http_status}"] + ([record.error_code] if record.error_code else [])
    return Step(
        _TONES[record.status], str(_ENDINGS[record.status]), detail, record.duration_seconds
    )

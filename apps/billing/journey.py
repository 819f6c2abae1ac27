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
    limits = _("%(limit)s of %(of)s: %(remaining)s left")
    targets = _("%(target)s, tier %(tier)s, weight %(weight)s")
    choice = _("%(target)s: %(rule)s")
    return [
        *_told(_("Limits checked"), limits, record.decision.get("limits")),
        *_told(_("Targets considered"), targets, record.decision.get("targets")),
        *_told(_("Chosen"), choice, record.decision.get("chosen")),
        *(_attempt(number, attempt) for number, attempt in enumerate(record.attempts, start=1)),
        _ending(record),
    ]


def _told(title: str, phrase: str, told: object) -> Iterator[Step]:
    """A step of the decision; none when the gateway wrote nothing of it."""
    items = told if isinstance(told, list) else [told] if told else []
    if items:
        yield Step("idle", title, [_worded(phrase, item) for item in items])


def _worded(phrase: str, item: object) -> str:
    """The phrase with the item's values; an item of another release is shown as it is."""
    try:
        return phrase % item
    except (KeyError, TypeError):
        return str(item)


def _attempt(number: int, attempt: UsageAttempt) -> Step:
    title = _("Attempt %(number)s: %(model)s on %(server)s") % {"number": number, **attempt}
    tone = _TONES.get(attempt["status"], "bad")
    problem = attempt["error"] or attempt["status"]
    return Step(tone, title, [] if tone == "ok" else [problem], attempt["seconds"])


def _ending(record: UsageRecord) -> Step:
    detail = [f"HTTP {record.http_status}"] + ([record.error_code] if record.error_code else [])
    return Step(
        _TONES[record.status], str(_ENDINGS[record.status]), detail, record.duration_seconds
    )

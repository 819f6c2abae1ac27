"""The way of a request through the gateway, step by step, as its record tells it."""

from collections.abc import Iterator, Mapping
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
    decision = record.decision
    return [
        *_told(_("Limits checked"), [_limit(item) for item in decision.get("limits") or []]),
        *_told(_("Targets considered"), [_target(item) for item in decision.get("targets") or []]),
        *_told(_("Chosen"), _choice(decision.get("chosen"))),
        *(_attempt(number, attempt) for number, attempt in enumerate(record.attempts, start=1)),
        _ending(record),
    ]


def _told(title: str, details: list[str]) -> Iterator[Step]:
    """A step of the decision; none when the gateway wrote nothing of it."""
    if details:
        yield Step("idle", title, details)


def _limit(item: Mapping[str, object]) -> str:
    return _("%(limit)s of %(of)s: %(remaining)s left") % item


def _target(item: Mapping[str, object]) -> str:
    return _("%(target)s, tier %(tier)s, weight %(weight)s") % item


def _choice(item: Mapping[str, object] | None) -> list[str]:
    return [_("%(target)s: %(rule)s") % item] if item else []


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

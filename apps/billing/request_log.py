"""Reading the log of requests page by page, newest first.

Pages are cut by key (`-at, -id`) and not by offset: the millionth row costs what the first does,
and rows that arrive while somebody turns pages move nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime

from apps.billing.models import UsageRecord

# Beyond this many, "100+ new" says enough.
MOST_COUNTED = 100


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the log: that of one record."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.id}"

    @classmethod
    def parse(cls, text: str | None) -> "Position | None":
        """What `str()` wrote; `None` for anything else, so that a bad link shows the newest."""
        at_text, _tilde, id_text = (text or "").partition("~")
        try:
            at = parse_datetime(at_text)
            return cls(at, UUID(id_text)) if at is not None and at.tzinfo is not None else None
        except ValueError:
            return None

    @classmethod
    def of(cls, record: UsageRecord) -> "Position":
        return cls(record.at, record.pk)


@dataclass(frozen=True, slots=True)
class LogPage:
    """Records newest first; `older` and `newer` are where the neighbouring pages begin."""

    records: list[UsageRecord]
    older: Position | None
    newer: Position | None

    @property
    def newest(self) -> Position | None:
        """Place of the first record, `None` on an empty page."""
        return Position.of(self.records[0]) if self.records else None


def records_for_display() -> QuerySet[UsageRecord]:
    """All records with the names that a list shows, in one query."""
    return UsageRecord.objects.select_related("team", "key", "route", "server")


def older_than(records: QuerySet[UsageRecord], position: Position) -> QuerySet[UsageRecord]:
    """Records behind a place, newest first."""
    # The first condition alone lets Postgres start in the index; the second settles ties.
    return records.filter(at__lte=position.at).exclude(at=position.at, id__gte=position.id)


def newer_than(records: QuerySet[UsageRecord], position: Position) -> QuerySet[UsageRecord]:
    """Records before a place."""
    return records.filter(at__gte=position.at).exclude(at=position.at, id__lte=position.id)


def page_older(records: QuerySet[UsageRecord], *, position: Position | None, size: int) -> LogPage:
    """The page behind `position`, or the newest page when that is `None`."""
    source = older_than(records, position) if position else records
    found = list(source.order_by("-at", "-id")[: size + 1])
    shown = found[:size]
    return LogPage(
        records=shown,
        older=Position.of(shown[-1]) if len(found) > size else None,
        newer=Position.of(shown[0]) if position and shown else None,
    )


def page_newer(records: QuerySet[UsageRecord], *, position: Position, size: int) -> LogPage:
    """The page before `position`; with too few records left it is the newest page."""
    found = list(newer_than(records, position).order_by("at", "id")[: size + 1])
    if len(found) <= size:
        return page_older(records, position=None, size=size)
    shown = found[size - 1 :: -1]
    return LogPage(records=shown, older=Position.of(shown[-1]), newer=Position.of(shown[0]))


def newer_count(records: QuerySet[UsageRecord], position: Position) -> int:
    """How many records came after `position`, counted up to MOST_COUNTED."""
    return newer_than(records, position).order_by()[:MOST_COUNTED].count()


def record_of(request_id: str) -> UsageRecord | None:
    """The record of a gateway request: by its id or by the `X-Request-ID` it carried."""
    return records_for_display().filter(matching(request_id)).order_by("-at").first()


def matching(request_id: str) -> Q:
    """Condition for one request id of either kind."""
    try:
        return Q(pk=UUID(request_id)) | Q(request_id=request_id)
    except ValueError:
        return Q(request_id=request_id)

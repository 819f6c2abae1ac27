"""Day partitions of the samples: made ahead of time, dropped when they are too old."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

import structlog
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.utils import timezone

log = structlog.get_logger(__name__)

DAYS_AHEAD = 2
_PREFIX = "metrics_sample_"
# Any number that is ours alone: two workers that make the same partition take turns.
_ADVISORY_LOCK = 0x5A4D01
# A partition is made or dropped under a lock that stops the charts: rather give up and come back.
_LOCK_TIMEOUT = "2s"

_CHILDREN = """
SELECT child.relname FROM pg_inherits
JOIN pg_class child ON child.oid = pg_inherits.inhrelid
WHERE pg_inherits.inhparent = 'metrics_sample'::regclass
"""


def partitions_maintain() -> None:
    """Make today's partition and the next ones, drop those past retention; safe to run twice."""
    today = timezone.now().astimezone(UTC).date()
    partitions_ensure(today + timedelta(days=ahead) for ahead in range(DAYS_AHEAD + 1))
    oldest = today - timedelta(days=settings.SAMPLE_RETENTION_DAYS)
    for day in sorted(partition_days()):
        if day < oldest:
            _drop(day)


def partitions_ensure(days: Iterable[date]) -> None:
    """Make the partitions of `days` (UTC) that are missing."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
        cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
        for day in sorted(set(days) - partition_days()):
            start = datetime(day.year, day.month, day.day, tzinfo=UTC)
            cursor.execute(
                f"CREATE TABLE {_name(day)} PARTITION OF metrics_sample "
                "FOR VALUES FROM (%s) TO (%s)",
                [start, start + timedelta(days=1)],
            )
            log.info("metrics.partition_made", day=day.isoformat())
        cursor.execute("SET LOCAL lock_timeout = DEFAULT")


def partition_days() -> set[date]:
    """Days (UTC) that have a partition."""
    with connection.cursor() as cursor:
        cursor.execute(_CHILDREN)
        names = [name for (name,) in cursor.fetchall()]
    return {
        datetime.strptime(name.removeprefix(_PREFIX), "%Y%m%d").replace(tzinfo=UTC).date()
        for name in names
    }


def _drop(day: date) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            cursor.execute(f"DROP TABLE IF EXISTS {_name(day)}")
            cursor.execute("SET LOCAL lock_timeout = DEFAULT")
    except OperationalError:  # somebody reads a long chart: the next run drops it
        log.warning("metrics.partition_not_dropped", day=day.isoformat())
    else:
        log.info("metrics.partition_dropped", day=day.isoformat())


def _name(day: date) -> str:
    return f"{_PREFIX}{day:%Y%m%d}"

"""Writing samples."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import structlog
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.utils import timezone
from psycopg.errors import CheckViolation

from apps.fleet.models import Server
from apps.metrics.models import Series
from apps.metrics.points import Point, SeriesKey
from apps.metrics.services import partitions

log = structlog.get_logger(__name__)

_INSERT = """
INSERT INTO metrics_sample (series_id, at, value)
SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::float8[])
ON CONFLICT DO NOTHING
"""


# Ids never change and a series is only deleted with its server, so a process may remember them.
known_series: dict[SeriesKey, int] = {}


def samples_write(*, points: Iterable[Point]) -> int:
    """Write points and give how many were kept; safe to run twice with the same ones.

    Points of servers that are gone, older than retention or more than a day ahead are left out.
    A day without a partition gets one. Raises DatabaseError with nothing written.
    """
    kept = [point for point in points if _is_in_range(point.at)]
    if not kept:
        return 0
    ids = _ids_of({point.key for point in kept})
    kept = [point for point in kept if point.key in ids]
    try:
        _insert(kept, ids)
    except IntegrityError as exc:
        # The table has no check but its partitions' bounds.
        if not isinstance(exc.__cause__, CheckViolation):
            raise
        partitions.partitions_ensure({point.at.astimezone(UTC).date() for point in kept})
        _insert(kept, ids)
    return len(kept)


def _is_in_range(at: datetime) -> bool:
    now = timezone.now()
    oldest = now - timedelta(days=settings.SAMPLE_RETENTION_DAYS)
    return oldest <= at <= now + timedelta(days=1)


def _insert(points: Sequence[Point], ids: dict[SeriesKey, int]) -> None:
    columns = (
        [ids[point.key] for point in points],
        [point.at for point in points],
        [float(point.value) for point in points],  # psycopg refuses int and float in one array
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_INSERT, columns)


def _ids_of(keys: set[SeriesKey]) -> dict[SeriesKey, int]:
    """Id of each series, made where it is new; without those whose server is gone."""
    missing = [key for key in keys if key not in known_series]
    if missing:
        known_series.update(_found_or_made(missing))
    return {key: known_series[key] for key in keys if key in known_series}


def _found_or_made(keys: list[SeriesKey]) -> dict[SeriesKey, int]:
    servers = {key.server_id for key in keys if key.server_id is not None}
    with transaction.atomic():
        # Locked, so that no server goes between the look and the insert.
        alive = set(
            Server.objects.select_for_update(no_key=True, of=("self",))
            .filter(pk__in=servers)
            .values_list("pk", flat=True)
        )
        wanted = [key for key in keys if key.server_id is None or key.server_id in alive]
        Series.objects.bulk_create(
            [Series(metric=k.metric, server_id=k.server_id, labels=dict(k.labels)) for k in wanted],
            ignore_conflicts=True,
        )
    of_servers = Q(server__in=servers) | Q(server=None)
    rows = Series.objects.filter(of_servers, metric__in={key.metric for key in wanted})
    found = {
        SeriesKey(row.metric, row.server_id, tuple(sorted(row.labels.items()))): row.pk
        for row in rows
    }
    return {key: found[key] for key in wanted if key in found}

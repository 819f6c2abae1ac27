"""The table of samples: partitions by day, retention, nothing lost for want of one."""

from datetime import UTC, date, timedelta

import pytest
from django.conf import LazySettings
from django.db import connection
from django.utils import timezone

from apps.metrics.models import Sample, Series
from apps.metrics.points import Point, SeriesKey
from apps.metrics.services.partitions import (
    partition_days,
    partitions_ensure,
    partitions_maintain,
)
from apps.metrics.services.samples import samples_write
from tests.factories import ServerFactory

pytestmark = pytest.mark.django_db

KEY = SeriesKey("requests_per_second", None)


def today() -> date:
    return timezone.now().astimezone(UTC).date()


def test_the_table_is_partitioned() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relkind FROM pg_class WHERE relname = 'metrics_sample'")
        assert cursor.fetchone() == ("p",)


def test_maintenance_makes_the_next_days_and_may_run_twice() -> None:
    partitions_maintain()
    partitions_maintain()

    assert partition_days() == {today() + timedelta(days=ahead) for ahead in range(3)}


def test_maintenance_drops_what_is_past_retention(settings: LazySettings) -> None:
    settings.SAMPLE_RETENTION_DAYS = 7
    partitions_ensure([today() - timedelta(days=age) for age in (7, 8, 40)])

    partitions_maintain()

    assert min(partition_days()) == today() - timedelta(days=7)


def test_a_sample_without_a_partition_makes_one() -> None:
    assert partition_days() == set()

    written = samples_write(points=[Point(KEY, timezone.now(), 1.0)])

    assert written == 1
    assert Sample.objects.get().value == 1.0
    assert partition_days() == {today()}


def test_a_batch_over_midnight_is_kept_whole() -> None:
    now = timezone.now()

    samples_write(points=[Point(KEY, now - timedelta(days=age), float(age)) for age in range(3)])

    assert Sample.objects.count() == 3


def test_samples_out_of_range_do_not_take_the_batch_with_them() -> None:
    now = timezone.now()
    ages = [timedelta(days=4000), timedelta(0), timedelta(days=-3)]

    written = samples_write(points=[Point(KEY, now - age, 1.0) for age in ages])

    assert written == 1
    assert Sample.objects.count() == 1


def test_writing_the_same_samples_twice_changes_nothing() -> None:
    point = Point(KEY, timezone.now(), 1.0)

    samples_write(points=[point])
    samples_write(points=[point])

    assert Sample.objects.count() == 1
    assert Series.objects.count() == 1


def test_samples_of_a_server_that_is_gone_are_left_out() -> None:
    server = ServerFactory.create()
    gone = SeriesKey("cpu_ratio", server.pk + 1000)
    now = timezone.now()

    written = samples_write(
        points=[Point(gone, now, 1.0), Point(SeriesKey("cpu_ratio", server.pk), now, 0.5)]
    )

    assert written == 1
    assert Series.objects.get().server == server


def test_a_server_can_be_deleted_with_its_series() -> None:
    server = ServerFactory.create()
    samples_write(points=[Point(SeriesKey("cpu_ratio", server.pk), timezone.now(), 0.5)])

    server.delete()

    assert Series.objects.count() == 0

"""What beat starts."""

import pytest
from celery import current_app
from django.db import OperationalError

from apps.metrics import tasks
from apps.metrics.pulse import beats
from apps.metrics.services import partitions

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.mark.parametrize(
    "name", ["metrics.sweep_servers", "metrics.fold_gateway", "metrics.maintain_samples"]
)
def test_the_schedule_names_tasks_that_exist(name: str) -> None:
    assert name in current_app.tasks


def test_the_tasks_leave_a_sign_of_life() -> None:
    tasks.sweep_servers.delay()
    tasks.fold_gateway.delay()

    assert set(beats()) == {"sweep", "fold"}


def test_maintenance_makes_partitions() -> None:
    tasks.maintain_samples.delay()

    assert len(partitions.partition_days()) == 3


def test_an_outage_is_one_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(partitions, "partitions_maintain", away)

    tasks.maintain_samples.delay()

    ours = [record for record in caplog.records if record.name.startswith("apps.")]
    assert [record.levelname for record in ours] == ["WARNING"]
    assert all(record.exc_info is None for record in caplog.records)

"""What happened to machines and requests, as numbers over time."""

from django.db import models
from django.utils import timezone

from apps.fleet.models import Server


class Series(models.Model):
    """One line of a chart: a metric of a server, a model on it, a GPU, or a route."""

    # "requests_per_second", "latency_p95_ms", "gpu_utilization_ratio" …: see `names.py`.
    metric = models.CharField(max_length=60)
    server = models.ForeignKey(Server, null=True, on_delete=models.CASCADE, related_name="+")
    # {"model": …, "version": …} or {"gpu": …}: only those that apply, values are text.
    labels = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["metric", "server", "labels"], nulls_distinct=False, name="series_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric} {self.labels}"


class Sample(models.Model):
    """One value at one time. The table is partitioned by day; old days are dropped whole.

    Nothing in the database ties a sample to its series: the check would cost more than the
    insert, and samples of a deleted server go with their day.
    """

    pk = models.CompositePrimaryKey("series_id", "at")
    series = models.ForeignKey(
        Series,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    at = models.DateTimeField()
    value = models.FloatField()

    class Meta:
        # Migration 0002 makes the table by hand, since Django cannot write PARTITION BY.
        db_table = "metrics_sample"

    def __str__(self) -> str:
        return f"{self.series_id} {self.at:%H:%M:%S} {self.value}"

"""What happened to machines and requests, as numbers over time."""

from django.db import models
from django.utils import timezone

from apps.fleet.models import Server


class Series(models.Model):
    """One line of a chart: a metric of a server, a model on it, a GPU, or a route."""

    # "request_rate", "latency_p95_seconds", "gpu_utilization_ratio" …: the list is in `names.py`.
    metric = models.CharField(max_length=60)
    server = models.ForeignKey(Server, null=True, on_delete=models.CASCADE, related_name="+")
    # {"model": …, "version": …, "gpu": …, "route": …}: only those that apply.
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
    """One value at one time. The table is partitioned by day; old days are dropped whole."""

    pk = models.CompositePrimaryKey("series_id", "at")
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    value = models.FloatField()

    class Meta:
        # The migration makes the table by hand, since Django cannot write PARTITION BY.
        managed = False
        db_table = "metrics_sample"

    def __str__(self) -> str:
        return f"{self.series_id} {self.at:%H:%M:%S} {self.value}"

"""The table of samples, partitioned by day. Its partitions are made by `metrics.maintain_samples`
and by whoever writes the first sample of a day."""

import django.db.models.deletion
from django.db import migrations, models

_CREATE = """
CREATE TABLE metrics_sample (
    series_id bigint NOT NULL,
    at timestamptz NOT NULL,
    value double precision NOT NULL,
    PRIMARY KEY (series_id, at)
) PARTITION BY RANGE (at)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("metrics", "0001_initial"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(sql=_CREATE, reverse_sql="DROP TABLE metrics_sample"),
            ],
            state_operations=[
                migrations.DeleteModel(name="Sample"),
                migrations.CreateModel(
                    name="Sample",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "series_id",
                                "at",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("at", models.DateTimeField()),
                        ("value", models.FloatField()),
                        (
                            "series",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="metrics.series",
                            ),
                        ),
                    ],
                    options={"db_table": "metrics_sample"},
                ),
            ],
        ),
    ]

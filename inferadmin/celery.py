"""The Celery application and its beat schedule."""

import os

from celery import Celery
from celery.signals import setup_logging
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inferadmin.settings")

app = Celery("inferadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _keep_our_logging(**_kwargs: object) -> None:
    """A receiver here stops Celery from setting up logging of its own."""


# Name of the task, seconds between two runs. A run that waits longer than its interval is dropped.
_SCHEDULE = [
    ("fleet.observe_servers", 2),
    ("fleet.advance_operations", 1),
    ("metrics.sweep_servers", settings.SWEEP_INTERVAL_SECONDS),
    ("metrics.fold_gateway", 1),
    ("metrics.maintain_samples", 300),
    ("billing.drain_ledger", 1),
    ("billing.mend_counters", 30),
]

app.conf.beat_schedule = {
    task: {"task": task, "schedule": seconds, "options": {"expires": max(seconds, 2)}}
    for task, seconds in _SCHEDULE
}

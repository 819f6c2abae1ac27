"""The composition root as a Django application, so that every process starts the same way."""

from django.apps import AppConfig

# Imported in every process: without it `task.delay()` would look for a broker of Celery's choice.
from inferadmin.celery import app as celery_app

__all__ = ["InferadminConfig", "celery_app"]


class InferadminConfig(AppConfig):
    name = "inferadmin"
    label = "inferadmin"

"""The product's settings with what tests need: a secret, fast hashing, no network."""

import os

os.environ.setdefault("INFERADMIN_SECRET_KEY", "tests-only-" + "x" * 40)
os.environ.setdefault("INFERADMIN_DATABASE_URL", "postgresql://postgres@127.0.0.1/inferadmin")
os.environ.setdefault("INFERADMIN_REDIS_URL", "redis://127.0.0.1:6379/0")
os.environ.setdefault("INFERADMIN_LOG_FORMAT", "console")

from inferadmin.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
SERVESTATIC_AUTOREFRESH = True

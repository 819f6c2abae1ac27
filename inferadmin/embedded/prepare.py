"""Migrate, gather static files, seed: `python -m inferadmin.embedded.prepare`, a plan on stdin."""

import hashlib
import os
import sys
from pathlib import Path

import django
import redis

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inferadmin.settings")
django.setup()  # loads the apps, so it stands before their imports

from django.conf import settings  # noqa: E402
from django.contrib.staticfiles.finders import get_finders  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import OperationalError, connection  # noqa: E402

from apps.core.redis import connection as redis_connection  # noqa: E402
from inferadmin.embedded import seed  # noqa: E402
from inferadmin.embedded.plan import Plan  # noqa: E402
from inferadmin.embedded.progress import step  # noqa: E402
from inferadmin.embedded.var import Var  # noqa: E402

# Pages of packages that nobody can reach here: we show neither ReDoc nor DRF's browsable API.
_UNUSED_STATIC = ["drf_spectacular_sidecar/redoc/*", "rest_framework/*"]


def prepare(plan: Plan) -> None:
    """Make the database and the static files fit the code; safe to run at every start."""
    var = Var(plan.folder)
    _require_services()
    with step("Database tables"):
        call_command("migrate", interactive=False, verbosity=0)
    with step("Static files"):
        _collect_static()
    with step("First records"):
        seeded = seed.seed(plan, var.credentials())
        var.save_credentials(seeded.credentials)
        var.save_loading(seeded.loading)


def _require_services() -> None:
    """End with what to do when PostgreSQL or Redis, which may be someone else's, is not there."""
    try:
        connection.ensure_connection()
    except OperationalError as exc:
        sys.exit(f"\nPostgreSQL does not answer (INFERADMIN_DATABASE_URL): {exc}")
    try:
        redis_connection().ping()
    except redis.RedisError as exc:
        sys.exit(f"\nRedis does not answer (INFERADMIN_REDIS_URL): {exc}")


def _collect_static() -> None:
    """`collectstatic`, left out when no source has changed: it compresses every file again."""
    stamp = settings.STATIC_ROOT / ".sources"
    digest = _static_digest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return
    call_command(
        "collectstatic",
        interactive=False,
        verbosity=0,
        clear=True,
        ignore_patterns=_UNUSED_STATIC,
    )
    stamp.write_text(digest, encoding="utf-8")


def _static_digest() -> str:
    """Digest of every static source; of its content, since a build writes the same files anew."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list(_UNUSED_STATIC):
            content = Path(storage.path(path)).read_bytes()
            digest.update(f"{path}:{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


if __name__ == "__main__":
    prepare(Plan.from_json(sys.stdin.buffer.read()))

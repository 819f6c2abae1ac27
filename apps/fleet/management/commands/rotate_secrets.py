"""`manage.py rotate_secrets`: write every stored secret with the encryption key of today."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.actors import Actor
from apps.fleet.services.secrets import secrets_rotate


class Command(BaseCommand):
    """Safe to stop and to run again: each secret is written by itself."""

    help = (
        "Encrypt the stored API keys of servers with INFERADMIN_ENCRYPTION_KEY. "
        "What was written with one of INFERADMIN_OLD_ENCRYPTION_KEYS is read and written anew."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count, and write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        found = secrets_rotate(
            actor=Actor(user=None, label="rotate_secrets"), is_dry_run=options["dry_run"]
        )
        verb = "to write anew" if options["dry_run"] else "written anew"
        self.stdout.write(f"{found.rotated} {verb}, {found.current} written with today's key")
        if found.unreadable:
            raise CommandError(
                "no key reads the secrets of: "
                + ", ".join(found.unreadable)
                + ". Add the key they were written with to INFERADMIN_OLD_ENCRYPTION_KEYS, "
                "or give these servers their API keys again."
            )

"""Changing the encryption key without losing an API key of a server."""

from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from apps.core.models import AuditEntry
from apps.core.secrets import decrypt, encrypt
from apps.fleet.models import Server
from tests.factories import ServerFactory

pytestmark = pytest.mark.django_db


def rotate(**options: Any) -> str:
    out = StringIO()
    call_command("rotate_secrets", stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def servers(settings: Any) -> list[Server]:
    """Two whose secret was written with an old key, one with today's, one without a secret."""
    settings.ENCRYPTION_KEY = "old"
    found = [
        ServerFactory.create(name=name, api_key_encrypted=encrypt(f"secret of {name}"))
        for name in ("a", "b")
    ]
    settings.ENCRYPTION_KEY, settings.OLD_ENCRYPTION_KEYS = "new", ["older", "old"]
    found.append(ServerFactory.create(name="c", api_key_encrypted=encrypt("secret of c")))
    ServerFactory.create(name="d")
    return found


def test_afterwards_the_old_key_is_needed_no_more(servers: list[Server], settings: Any) -> None:
    assert rotate() == "2 written anew, 1 written with today's key\n"
    settings.OLD_ENCRYPTION_KEYS = []

    for server in servers:
        server.refresh_from_db()
        assert decrypt(server.api_key_encrypted) == f"secret of {server.name}"
    assert rotate() == "0 written anew, 3 written with today's key\n"
    entries = AuditEntry.objects.filter(action="server.rotate_secret")
    assert sorted(entry.object_label for entry in entries) == ["a", "b"]


def test_a_dry_run_only_counts(servers: list[Server], settings: Any) -> None:
    assert rotate(dry_run=True) == "2 to write anew, 1 written with today's key\n"
    settings.OLD_ENCRYPTION_KEYS = []

    servers[0].refresh_from_db()
    with pytest.raises(ImproperlyConfigured, match="OLD_ENCRYPTION_KEYS"):
        decrypt(servers[0].api_key_encrypted)


def test_what_no_key_reads_is_named_and_kept(servers: list[Server], settings: Any) -> None:
    settings.OLD_ENCRYPTION_KEYS = ["wrong"]
    before = servers[0].api_key_encrypted

    with pytest.raises(CommandError, match="no key reads the secrets of: a, b"):
        rotate()

    servers[0].refresh_from_db()
    assert servers[0].api_key_encrypted == before

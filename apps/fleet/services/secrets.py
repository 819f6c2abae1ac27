"""Writing the stored API keys of servers with another encryption key."""

from dataclasses import dataclass, field

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.roles import Permission
from apps.core.secrets import decrypt, encrypt, is_current
from apps.fleet.models import Server


@dataclass(slots=True)
class Rotation:
    """How many secrets were written anew and how many needed it not; names of servers else."""

    rotated: int = 0
    current: int = 0
    unreadable: list[str] = field(default_factory=list)


def secrets_rotate(*, actor: Actor, is_dry_run: bool = False) -> Rotation:
    """Write every secret with the key of today, each in a transaction of its own."""
    actor.require(Permission.ADMINISTER)
    found = Rotation()
    servers = Server.objects.exclude(api_key_encrypted="").order_by("name")
    for pk in servers.values_list("pk", flat=True):
        _rotate_one(actor, pk, found, is_dry_run=is_dry_run)
    return found


@transaction.atomic
def _rotate_one(actor: Actor, pk: int, found: Rotation, *, is_dry_run: bool) -> None:
    server = Server.objects.select_for_update().filter(pk=pk).first()
    if server is None:  # deleted in the meantime
        return
    if is_current(server.api_key_encrypted):
        found.current += 1
        return
    try:
        secret = decrypt(server.api_key_encrypted)
    except ImproperlyConfigured:
        found.unreadable.append(server.name)
        return
    found.rotated += 1
    if not is_dry_run:
        server.api_key_encrypted = encrypt(secret)
        server.save(update_fields=["api_key_encrypted"])
        audit_write(actor=actor, action="server.rotate_secret", target=server)

"""Actions on server records."""

from typing import Any, TypedDict, Unpack

from django.db import transaction
from django.db.models import ProtectedError

from apps.core import live
from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.changes import announce_on_commit
from apps.core.errors import ConflictError, InvalidRequestError
from apps.core.roles import Permission
from apps.core.rows import row_assign, row_insert, row_locked, row_update
from apps.core.secrets import encrypt
from apps.fleet.addresses import (
    api_key_checked,
    api_root_checked,
    host_and_port_checked,
    origin_of,
    url_checked,
)
from apps.fleet.models import Placement, Server

# What these kinds serve leaves the house.
_PAID = {Server.Kind.OPENAI, Server.Kind.ANTHROPIC, Server.Kind.GEMINI, Server.Kind.DEEPSEEK}
_PLAIN_FIELDS = (
    "name", "kind", "url", "grpc_address", "metrics_url", "is_external", "is_enabled", "note",
)  # fmt: skip
# A server at another address is another one until we have looked.
_UNSEEN: dict[str, Any] = {
    "state": Server.State.UNKNOWN,
    "state_reason": {},
    "failed_looks": 0,
    "control_mode": Server.ControlMode.UNKNOWN,
    "control_checked_at": None,
    "looked_at": None,
}


class ServerChanges(TypedDict, total=False):
    """What `server_update` may change; what is left out stays.

    `api_key`: in clear; empty takes it away.
    """

    name: str
    url: str
    grpc_address: str
    metrics_url: str
    is_external: bool
    is_enabled: bool
    api_key: str
    note: str


@transaction.atomic
def server_create(
    *,
    actor: Actor,
    name: str,
    kind: str,
    url: str,
    grpc_address: str = "",
    metrics_url: str = "",
    is_external: bool | None = None,
    is_enabled: bool = True,
    api_key: str = "",
    note: str = "",
) -> Server:
    """New server; it is looked at within seconds.

    `is_external`: `None` takes what is usual for the kind. The key is kept encrypted and is never
    shown again. Raises InvalidRequestError with `fields`, ConflictError for a name that is taken.
    """
    actor.require(Permission.ADMINISTER)
    server = Server(name=name, kind=kind, is_enabled=is_enabled, note=note)
    server.is_external = kind in _PAID if is_external is None else is_external
    addresses: ServerChanges = {
        "url": url, "grpc_address": grpc_address, "metrics_url": metrics_url, "api_key": api_key,
    }  # fmt: skip
    row_assign(server, _checked(server, addresses))
    row_insert(server)
    audit_write(actor=actor, action="server.create", target=server, after=_facts(server))
    _changed(server)
    return server


@transaction.atomic
def server_update(*, actor: Actor, server_id: int, **changes: Unpack[ServerChanges]) -> Server:
    """Change a server; gateway workers follow within two seconds.

    Raises InvalidRequestError with `fields`, also when the address changes and the kept key is
    not given anew: it would be sent to somebody else.
    """
    actor.require(Permission.ADMINISTER)
    server = row_locked(Server, server_id)
    facts = _facts(server)
    values = _checked(server, changes)
    has_moved = "url" in values and origin_of(values["url"]) != origin_of(server.url)
    if has_moved and server.api_key_encrypted and "api_key" not in changes:
        raise InvalidRequestError.of(
            "api_key", "the address changes: give the key for it too, or empty to forget the old"
        )
    if has_moved:
        values |= _UNSEEN
        _forget_versions(server)
    before = row_assign(server, values)
    if before:
        row_update(server, list(before))
        _audit_change(actor, server, facts)
        _changed(server)
    return server


@transaction.atomic
def server_delete(*, actor: Actor, server_id: int) -> None:
    """Delete a server with its placements and their operations; models in it go on running.

    Raises ConflictError while routes point to it.
    """
    actor.require(Permission.ADMINISTER)
    server = row_locked(Server, server_id)
    audit_write(actor=actor, action="server.delete", target=server, before=_facts(server))
    live.changed_on_commit("server", server.pk, server_id=server.pk)
    announce_on_commit("config")
    try:
        with transaction.atomic():
            server.delete()
    except ProtectedError as exc:
        names = ", ".join(sorted(str(item) for item in list(exc.protected_objects)[:5]))
        raise ConflictError(
            f"{server.name} is in use ({names}); take it out of the routes first"
        ) from exc


def _checked(server: Server, changes: ServerChanges) -> dict[str, Any]:
    """The changes as columns, addresses and key checked and cleaned."""
    values: dict[str, Any] = {**changes}
    if "url" in changes:
        check = url_checked if server.is_triton else api_root_checked
        values["url"] = check("url", changes["url"])
    if "grpc_address" in changes:
        values["grpc_address"] = host_and_port_checked("grpc_address", changes["grpc_address"])
    if changes.get("metrics_url"):
        values["metrics_url"] = url_checked("metrics_url", changes["metrics_url"])
    if "api_key" in changes:
        key = api_key_checked("api_key", values.pop("api_key"))
        values["api_key_encrypted"] = encrypt(key)
    return values


def _forget_versions(server: Server) -> None:
    server.placements.update(observed=Placement.Observed.UNKNOWN, versions=[], reason="")


def _facts(server: Server) -> dict[str, object]:
    """What the audit shows; of the key only whether there is one."""
    facts: dict[str, object] = {name: getattr(server, name) for name in _PLAIN_FIELDS}
    return {**facts, "has_api_key": bool(server.api_key_encrypted)}


def _audit_change(actor: Actor, server: Server, before: dict[str, object]) -> None:
    after = _facts(server)
    changed = [name for name in after if after[name] != before[name]]
    audit_write(
        actor=actor,
        action="server.update",
        target=server,
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
    )


def _changed(server: Server) -> None:
    live.changed_on_commit("server", server.pk, server_id=server.pk)
    announce_on_commit("config")

"""Asking for a load, an unload or a reload. The work itself is in `control`."""

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.core import live
from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.errors import ConflictError, InvalidRequestError, NotFoundError
from apps.core.roles import Permission
from apps.fleet import tasks
from apps.fleet.models import Operation, Placement, Server

# How long an operation may wait for its server before it is given up.
WAIT_FOR_SERVER = timedelta(minutes=5)

_DESIRED = {
    Operation.Kind.LOAD: Placement.Desired.LOADED,
    Operation.Kind.UNLOAD: Placement.Desired.UNLOADED,
    Operation.Kind.RELOAD: Placement.Desired.LOADED,
}


@transaction.atomic
def operation_request(*, actor: Actor, placement_id: int, kind: str) -> Operation:
    """Want a model loaded, unloaded or reloaded, and queue the work.

    The wish stays after the operation has ended: a server that was restarted gets it again.
    Raises InvalidRequestError for an unknown kind or a server on which nothing can be loaded,
    ConflictError while another operation of the placement is open, PermissionDeniedError.
    """
    actor.require(Permission.OPERATE)
    if kind not in Operation.Kind.values:
        known = ", ".join(Operation.Kind.values)
        raise InvalidRequestError.of("kind", f"use one of {known}")
    placement = _placement_locked(placement_id)
    _require_control(placement.server)
    return operation_open(actor=actor, placement=placement, kind=Operation.Kind(kind))


def operation_open(*, actor: Actor, placement: Placement, kind: Operation.Kind) -> Operation:
    """New pending operation on a placement that the caller has locked.

    Raises ConflictError while another one is open.
    """
    before = {"desired": placement.desired}
    placement.desired = _DESIRED[kind]
    placement.generation += 1
    operation = _insert(actor, placement, kind)
    placement.save(update_fields=["desired", "generation"])
    audit_write(
        actor=actor,
        action=f"placement.{kind}",
        target=placement,
        before=before,
        after={"desired": placement.desired, "operation": operation.pk},
    )
    operation_changed(operation, placement)
    transaction.on_commit(tasks.nudge)
    return operation


def operation_changed(operation: Operation, placement: Placement) -> None:
    """Tell open pages, after commit, that the operation and so its placement look different."""
    live.changed_on_commit("operation", operation.pk, server_id=placement.server_id)
    live.changed_on_commit("placement", placement.pk, server_id=placement.server_id)


def _insert(actor: Actor, placement: Placement, kind: Operation.Kind) -> Operation:
    """The database, not a look beforehand, decides who of two comes first."""
    now = timezone.now()
    try:
        with transaction.atomic():
            return Operation.objects.create(
                placement=placement,
                kind=kind,
                step=_first_step(kind),
                generation=placement.generation,
                requested_by=actor.user,
                requested_by_label=actor.label,
                created_at=now,
                due_at=now,
                deadline_at=now + WAIT_FOR_SERVER,
            )
    except IntegrityError as exc:
        raise ConflictError(
            f"an operation on {placement} is under way; wait until it has ended"
        ) from exc


def _first_step(kind: Operation.Kind) -> Operation.Step:
    return Operation.Step.LOAD if kind == Operation.Kind.LOAD else Operation.Step.UNLOAD


def _placement_locked(pk: int) -> Placement:
    placement = (
        Placement.objects.select_related("server", "model")
        .select_for_update(of=("self",), no_key=True)
        .filter(pk=pk)
        .first()
    )
    if placement is None:
        raise NotFoundError(f"there is no placement {pk}")
    return placement


def _require_control(server: Server) -> None:
    """Raise unless models of the server can be loaded and unloaded."""
    if not server.is_triton:
        raise InvalidRequestError(
            f"{server.name} is a {server.get_kind_display()} server: "
            "its models are chosen when it is started"
        )
    if server.control_mode == Server.ControlMode.READ_ONLY:
        raise InvalidRequestError(
            f"{server.name} does not let us load and unload; "
            "start it with --model-control-mode=explicit"
        )
    if not server.is_enabled:
        raise ConflictError(f"{server.name} is disabled; enable it first")

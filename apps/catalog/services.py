"""Actions on the catalogue."""

from collections.abc import Collection
from typing import TypedDict, Unpack

from django.db import transaction

from apps.catalog.models import ModelVersion, ServedModel
from apps.core import live
from apps.core.actors import SYSTEM, Actor
from apps.core.audit import audit_write
from apps.core.roles import Permission
from apps.core.rows import row_assign, row_insert, row_locked, row_update

DEFAULT_LOAD_DEADLINE_SECONDS = 300


class ModelChanges(TypedDict, total=False):
    """What `model_update` may change; what is left out stays. The name is the server's."""

    kind: str
    description: str
    load_deadline_seconds: int


@transaction.atomic
def model_create(
    *,
    actor: Actor,
    name: str,
    kind: str = ServedModel.Kind.OTHER,
    description: str = "",
    load_deadline_seconds: int = DEFAULT_LOAD_DEADLINE_SECONDS,
) -> ServedModel:
    """New model under the name that servers know it by.

    Raises InvalidRequestError with `fields`, ConflictError for a name that is taken.
    """
    actor.require(Permission.OPERATE)
    values: ModelChanges = {
        "kind": kind,
        "description": description,
        "load_deadline_seconds": load_deadline_seconds,
    }
    model = ServedModel(name=name, **values)
    row_insert(model)
    audit_write(actor=actor, action="model.create", target=model, after={"name": name, **values})
    live.changed_on_commit("model", model.pk)
    return model


@transaction.atomic
def model_update(*, actor: Actor, model_id: int, **changes: Unpack[ModelChanges]) -> ServedModel:
    """Change what is said of a model; raises InvalidRequestError with `fields`."""
    actor.require(Permission.OPERATE)
    model = row_locked(ServedModel, model_id)
    before = row_assign(model, changes)
    if before:
        row_update(model, list(before))
        after = {name: getattr(model, name) for name in before}
        audit_write(actor=actor, action="model.update", target=model, before=before, after=after)
        live.changed_on_commit("model", model.pk)
    return model


@transaction.atomic
def models_discover(names: Collection[str]) -> dict[str, ServedModel]:
    """The models of these names, those that are new made; safe for two at once."""
    known = {model.name: model for model in ServedModel.objects.filter(name__in=names)}
    for name in sorted(set(names) - set(known)):
        model, is_new = ServedModel.objects.get_or_create(name=name)
        known[name] = model
        if is_new:
            audit_write(actor=SYSTEM, action="model.discover", target=model)
            live.changed_on_commit("model", model.pk)
    return known


def versions_discover(model_numbers: Collection[tuple[int, int]]) -> None:
    """Make the versions, given as (model id, number), that are not in the catalogue yet."""
    ModelVersion.objects.bulk_create(
        [ModelVersion(model_id=model_id, number=number) for model_id, number in model_numbers],
        ignore_conflicts=True,
    )

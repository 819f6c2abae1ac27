"""Reading and writing one row in a service: locked, checked, with errors a caller can act on."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, models, transaction

from apps.core.errors import ConflictError, InvalidRequestError, NotFoundError

M = TypeVar("M", bound=models.Model)


def row_locked(model: type[M], pk: object) -> M:
    """The row, locked until the transaction ends; raises NotFoundError.

    Rows that merely refer to it can still be written meanwhile (FOR NO KEY UPDATE).
    """
    row = model._default_manager.select_for_update(no_key=True).filter(pk=pk).first()
    if row is None:
        raise NotFoundError(f"there is no {model._meta.verbose_name} {pk}")
    return row


def row_assign(row: models.Model, values: Mapping[str, Any]) -> dict[str, object]:
    """Set `values` on the row, unsaved; gives what those that differ were before."""
    before = {name: getattr(row, name) for name in values if getattr(row, name) != values[name]}
    for name in before:
        setattr(row, name, values[name])
    return before


def row_insert(row: models.Model) -> None:
    """Check and insert a new row.

    Raises InvalidRequestError with `fields`, or ConflictError when another row stands in its way,
    also one that was written at the same moment.
    """
    _check(row, [field.name for field in row._meta.fields])
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as exc:
        raise ConflictError(f"there is such a {row._meta.verbose_name} already") from exc


def row_update(row: models.Model, fields: list[str]) -> None:
    """Check and write `fields`; raises as `row_insert` does."""
    _check(row, fields)
    try:
        with transaction.atomic():
            row.save(update_fields=fields)
    except IntegrityError as exc:
        raise ConflictError(f"there is such a {row._meta.verbose_name} already") from exc


def _check(row: models.Model, fields: Collection[str]) -> None:
    try:
        row.clean_fields(exclude={item.name for item in row._meta.fields} - set(fields))
    except ValidationError as exc:
        raise InvalidRequestError(_text(exc), fields=exc.message_dict) from exc
    try:
        row.validate_unique()
        row.validate_constraints()
    except ValidationError as exc:
        raise ConflictError(_text(exc)) from exc


def _text(exc: ValidationError) -> str:
    """All messages on one line, each after its field's name."""
    return "; ".join(
        " ".join(messages) if name == NON_FIELD_ERRORS else f"{name}: {' '.join(messages)}"
        for name, messages in exc.message_dict.items()
    )

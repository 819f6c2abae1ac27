"""Models of the catalogue."""

from functools import partial

import pytest

from apps.catalog import services
from apps.catalog.models import ModelVersion, ServedModel
from apps.core.actors import Actor
from apps.core.audit import history_of
from apps.core.errors import ConflictError, InvalidRequestError, PermissionDeniedError
from apps.core.models import User
from tests.factories import ServedModelFactory
from tests.support.races import at_once


def test_a_model_is_made_and_changed_with_a_trace(actor: Actor) -> None:
    model = services.model_create(actor=actor, name="smollm2", kind="llm")

    services.model_update(actor=actor, model_id=model.pk, load_deadline_seconds=60)
    services.model_update(actor=actor, model_id=model.pk, load_deadline_seconds=60)

    entries = [(entry.action, entry.before, entry.after) for entry in history_of(model)]
    change = ({"load_deadline_seconds": 300}, {"load_deadline_seconds": 60})
    assert entries[0] == ("model.update", *change)
    assert [action for action, _before, _after in entries] == ["model.update", "model.create"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "my model", "%2e%2e", ".git"])
def test_names_are_safe_in_urls_and_paths(actor: Actor, name: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        services.model_create(actor=actor, name=name)

    assert list(caught.value.fields) == ["name"]


def test_a_name_is_given_once(actor: Actor) -> None:
    services.model_create(actor=actor, name="smollm2")

    with pytest.raises(ConflictError):
        services.model_create(actor=actor, name="smollm2")


def test_a_deadline_is_positive(actor: Actor) -> None:
    model = ServedModelFactory.create()

    with pytest.raises(InvalidRequestError, match="load_deadline_seconds"):
        services.model_update(actor=actor, model_id=model.pk, load_deadline_seconds=0)


def test_the_viewer_may_not(viewer: User) -> None:
    actor = Actor(user=viewer, label="viewer")

    with pytest.raises(PermissionDeniedError):
        services.model_create(actor=actor, name="smollm2")
    with pytest.raises(PermissionDeniedError):
        services.model_update(actor=actor, model_id=ServedModelFactory.create().pk, kind="llm")


@pytest.mark.django_db(transaction=True)
def test_a_model_found_by_two_at_once_is_made_once() -> None:
    discover = partial(services.models_discover, ["a", "b"])

    at_once([discover, discover])

    assert sorted(ServedModel.objects.values_list("name", flat=True)) == ["a", "b"]


@pytest.mark.django_db
def test_versions_are_made_once() -> None:
    model = ServedModelFactory.create()

    services.versions_discover([(model.pk, 1), (model.pk, 2)])
    services.versions_discover([(model.pk, 2), (model.pk, 3)])

    assert list(ModelVersion.objects.values_list("number", flat=True)) == [3, 2, 1]

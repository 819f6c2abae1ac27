"""Asking for a load, an unload or a reload."""

from functools import partial

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from apps.core.actors import SYSTEM, Actor
from apps.core.audit import history_of
from apps.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from apps.core.models import User
from apps.core.redis import connection
from apps.fleet.models import Operation, Placement, Server
from apps.fleet.services.operations import operation_request
from tests.factories import OperationFactory, PlacementFactory, ServerFactory
from tests.support.races import at_once


@pytest.mark.parametrize(
    ("kind", "desired", "step"),
    [("load", "loaded", "load"), ("unload", "unloaded", "unload"), ("reload", "loaded", "unload")],
)
def test_a_request_is_a_pending_operation_and_a_wish_that_stays(
    operator: User, kind: str, desired: str, step: str
) -> None:
    placement = PlacementFactory.create()
    actor = Actor(user=operator, label="operator")

    operation = operation_request(actor=actor, placement_id=placement.pk, kind=kind)

    placement.refresh_from_db()
    assert (placement.desired, placement.generation) == (desired, 1)
    assert (operation.state, operation.step, operation.generation) == ("pending", step, 1)
    assert (operation.requested_by, operation.requested_by_label) == (operator, "operator")
    assert history_of(placement)[0].action == f"placement.{kind}"


def test_the_viewer_may_not(viewer: User) -> None:
    placement = PlacementFactory.create()

    with pytest.raises(PermissionDeniedError):
        operation_request(
            actor=Actor(user=viewer, label="viewer"), placement_id=placement.pk, kind="load"
        )

    assert not Operation.objects.exists()


def test_one_open_operation_a_placement(actor: Actor) -> None:
    placement = PlacementFactory.create()
    OperationFactory.create(placement=placement)

    with pytest.raises(ConflictError, match="under way"):
        operation_request(actor=actor, placement_id=placement.pk, kind="unload")

    placement.refresh_from_db()
    assert placement.generation == 0


@pytest.mark.django_db(transaction=True)
def test_of_two_requests_at_once_one_is_taken() -> None:
    placement = PlacementFactory.create()
    ask = partial(operation_request, actor=SYSTEM, placement_id=placement.pk, kind="load")

    outcomes = at_once([ask, ask])

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ConflictError", "Operation"]
    assert Operation.objects.count() == 1


@pytest.mark.parametrize(
    "facts",
    [{"kind": Server.Kind.LLAMA_CPP}, {"control_mode": Server.ControlMode.READ_ONLY}],
)
def test_servers_that_load_nothing_say_so(actor: Actor, facts: dict[str, str]) -> None:
    placement = PlacementFactory.create(server=ServerFactory.create(**facts))

    with pytest.raises(InvalidRequestError, match=placement.server.name):
        operation_request(actor=actor, placement_id=placement.pk, kind="load")


def test_a_disabled_server_is_left_alone(actor: Actor) -> None:
    placement = PlacementFactory.create(server=ServerFactory.create(is_enabled=False))

    with pytest.raises(ConflictError, match="enable it first"):
        operation_request(actor=actor, placement_id=placement.pk, kind="load")


def test_what_does_not_exist_is_named(actor: Actor) -> None:
    with pytest.raises(NotFoundError):
        operation_request(actor=actor, placement_id=12345, kind="load")
    with pytest.raises(InvalidRequestError, match="load, unload, reload"):
        operation_request(actor=actor, placement_id=12345, kind="explode")
    assert not Placement.objects.exists()


def test_a_redis_that_is_away_does_not_stop_a_request(
    db: None, settings: Settings, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    placement = PlacementFactory.create()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    connection.cache_clear()

    with django_capture_on_commit_callbacks(execute=True):
        operation = operation_request(actor=SYSTEM, placement_id=placement.pk, kind="load")

    connection.cache_clear()
    operation.refresh_from_db()
    assert operation.state == Operation.State.PENDING

"""Workers that die in the middle, and several at once."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from apps.fleet.models import Operation
from apps.fleet.services.control import operations_advance
from tests.factories import OperationFactory
from tests.fleet.conftest import Place, advance, age, ask, finish
from tests.support.fake_triton import FakeTriton
from tests.support.races import at_once


def _taken_by_a_dead_worker(operation: Operation, **facts: object) -> Operation:
    """As the row looks when a worker was killed with the operation in its hands."""
    long_ago = timezone.now() - timedelta(seconds=16)
    Operation.objects.filter(pk=operation.pk).update(heartbeat_at=long_ago, **facts)
    operation.refresh_from_db()
    return operation


def test_what_another_worker_holds_is_left_to_it(place: Place, fake: FakeTriton) -> None:
    operation = ask(place(), "load")
    Operation.objects.update(heartbeat_at=timezone.now())

    advance(operation)

    assert operation.state == Operation.State.PENDING
    assert fake.commands == []


def test_killed_before_it_sent_anything(place: Place, fake: FakeTriton) -> None:
    operation = _taken_by_a_dead_worker(ask(place(), "load"))

    finish(operation)

    assert operation.verdict["code"] == "loaded"
    assert fake.sent("load") == 1


def test_killed_between_the_row_and_the_command(place: Place, fake: FakeTriton) -> None:
    """Dispatched says that it may have been sent; after a while without a trace it is sent."""
    operation = _sent_by_a_dead_worker(ask(place(), "load"))

    advance(operation)
    assert fake.commands == []
    age(operation, 11)
    finish(operation)

    assert operation.verdict["code"] == "loaded"
    assert (fake.sent("load"), operation.attempts) == (1, 2)


def _sent_by_a_dead_worker(operation: Operation) -> Operation:
    now = timezone.now()
    return _taken_by_a_dead_worker(
        operation,
        state=Operation.State.DISPATCHED,
        attempts=1,
        dispatched_at=now,
        sent_at=now,
        deadline_at=now + timedelta(seconds=300),
    )


def test_killed_after_the_command_while_the_server_loads(place: Place, fake: FakeTriton) -> None:
    operation = _sent_by_a_dead_worker(ask(place(), "load"))
    fake.models["model"].show("LOADING")

    advance(operation)
    assert operation.state == Operation.State.OBSERVING
    fake.models["model"].show("READY")
    finish(operation)

    assert operation.verdict["code"] == "loaded"
    assert fake.commands == []


def test_killed_after_the_command_and_the_load_has_failed(place: Place, fake: FakeTriton) -> None:
    operation = _sent_by_a_dead_worker(ask(place(), "load"))
    fake.models["model"].show("UNAVAILABLE", "Internal: no weights")

    finish(operation)

    assert (operation.verdict, operation.reason) == (
        {"code": "load_failed"},
        "Internal: no weights",
    )
    assert fake.commands == []


def test_killed_while_it_verified(place: Place, fake: FakeTriton) -> None:
    operation = _sent_by_a_dead_worker(ask(place(), "load"))
    Operation.objects.update(state=Operation.State.VERIFYING)
    fake.models["model"].show("READY")

    finish(operation)

    assert operation.verdict["code"] == "loaded"


def test_killed_between_the_steps_of_a_reload(place: Place, fake: FakeTriton) -> None:
    operation = ask(place(state="READY"), "reload")
    advance(operation)
    while operation.step == Operation.Step.UNLOAD:
        advance(operation)

    finish(_taken_by_a_dead_worker(operation))

    assert operation.verdict["code"] == "reloaded"
    assert fake.commands == [("unload", "model"), ("load", "model")]


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_was_only_slow_does_not_write_over_its_successor(
    place: Place, fake: FakeTriton
) -> None:
    operation = OperationFactory.create(placement=place())
    later = timezone.now() + timedelta(seconds=1)

    def another_takes_over() -> None:
        Operation.objects.update(heartbeat_at=later)
        connection.close()

    fake.on_command = another_takes_over

    operations_advance()

    operation.refresh_from_db()
    assert fake.sent("load") == 1
    assert (operation.state, operation.heartbeat_at) == (Operation.State.DISPATCHED, later)
    assert operation.is_accepted is None


@pytest.mark.django_db(transaction=True)
def test_two_rounds_at_once_send_each_command_once(place: Place, fake: FakeTriton) -> None:
    operations = [
        OperationFactory.create(placement=place(f"model-{number}")) for number in range(2)
    ]

    taken = at_once([operations_advance, operations_advance])

    assert taken in ([2, 0], [1, 1], [0, 2])
    assert sorted(fake.commands) == [("load", "model-0"), ("load", "model-1")]
    assert {finish(operation).state for operation in operations} == {"done"}

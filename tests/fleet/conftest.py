"""A scripted Triton, and operations on it."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core.actors import SYSTEM
from apps.fleet.models import Operation, Placement, Server
from apps.fleet.services.control import operations_advance
from apps.fleet.services.observation import servers_observe
from apps.fleet.services.operations import operation_request
from tests.factories import PlacementFactory, ServedModelFactory, ServerFactory
from tests.support.fake_triton import FakeModel, FakeTriton

Place = Callable[..., Placement]


@pytest.fixture
def fake() -> Iterator[FakeTriton]:
    with FakeTriton() as triton:
        yield triton


@pytest.fixture
def server(db: None, fake: FakeTriton) -> Server:
    """The record of `fake`, not yet looked at."""
    return ServerFactory.create(url=fake.url, grpc_address=fake.grpc_address)


@pytest.fixture
def place(server: Server, fake: FakeTriton) -> Place:
    """A model in the repository of `fake` with its placement: `place("slow", load_seconds=3)`."""

    def make(name: str = "model", *, state: str = "", **script: object) -> Placement:
        model = FakeModel(**script)  # type: ignore[arg-type]  # a script's values
        if state:
            model.show(state)
        fake.models[name] = model
        served = ServedModelFactory.create(name=name)
        return PlacementFactory.create(server=server, model=served)

    return make


def ask(placement: Placement, kind: str) -> Operation:
    return operation_request(actor=SYSTEM, placement_id=placement.pk, kind=kind)


def advance(operation: Operation) -> Operation:
    """One round, whatever back-off the operation is in."""
    Operation.objects.filter(pk=operation.pk).update(due_at=timezone.now())
    operations_advance()
    operation.refresh_from_db()
    return operation


def finish(operation: Operation, *, seconds: float = 15) -> Operation:
    """Rounds until the operation has ended."""
    deadline = time.monotonic() + seconds
    while advance(operation).is_open:
        assert time.monotonic() < deadline, f"still {operation.state}: {operation.verdict}"
        time.sleep(0.05)
    return operation


def age(operation: Operation, seconds: float) -> None:
    """Make what has happened to the operation happen earlier."""
    by = timedelta(seconds=seconds)
    operation.refresh_from_db()
    for name in ("created_at", "dispatched_at", "sent_at", "heartbeat_at", "deadline_at", "due_at"):
        moment = getattr(operation, name)
        if moment is not None:
            setattr(operation, name, moment - by)
    operation.save()


def observe(server: Server) -> Server:
    """One look at the server, due or not."""
    Server.objects.filter(pk=server.pk).update(looked_at=None)
    servers_observe()
    server.refresh_from_db()
    return server

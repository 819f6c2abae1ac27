"""What a look at a server writes down."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from apps.catalog.models import ModelVersion, ServedModel
from apps.core.models import AuditEntry
from apps.core.redis import connection
from apps.fleet.models import Operation, Placement, Server
from apps.fleet.services.observation import server_observe, servers_observe
from apps.fleet.sightings import ModelSeen, ServerSeen, VersionSeen
from tests.factories import OperationFactory, ServerFactory
from tests.fleet.conftest import Place, ask, finish, observe
from tests.support.fake_triton import FakeModel, FakeTriton
from tests.support.races import at_once


def _on(server: Server) -> dict[str, str]:
    rows = Placement.objects.filter(server=server).select_related("model")
    return {row.model.name: row.observed for row in rows}


def test_a_first_look_finds_version_control_and_models(server: Server, fake: FakeTriton) -> None:
    fake.models["chat"] = FakeModel(on_disk=[1, 2])
    fake.models["chat"].show("READY")
    fake.models["idle"] = FakeModel()

    observe(server)

    assert (server.state, server.engine_version) == ("online", "2.51.0")
    assert (server.control_mode, server.extensions) == ("explicit", ["statistics"])
    assert server.last_seen_at is not None
    assert _on(server) == {"chat": "ready", "idle": "unloaded"}
    chat = Placement.objects.get(model__name="chat")
    assert (chat.desired, chat.ready_versions) == ("unmanaged", [2, 1])
    assert list(ModelVersion.objects.values_list("number", flat=True)) == [2, 1]
    assert AuditEntry.objects.filter(action="model.discover").count() == 2


def test_names_that_are_not_safe_are_left_out(server: Server, fake: FakeTriton) -> None:
    for name in ("..", ".git", "my model", "a/b", "x" * 200, "<script>", "good"):
        fake.models[name] = FakeModel()

    observe(server)

    assert _on(server) == {"good": "unloaded"}
    assert ServedModel.objects.count() == 1


def test_versions_of_all_states_are_kept_with_their_reasons(
    server: Server, fake: FakeTriton
) -> None:
    fake.models["m"] = FakeModel(
        known={1: ("READY", ""), 2: ("UNAVAILABLE", "Internal: no weights"), 3: ("LOADING", "")}
    )

    observe(server)

    placement = Placement.objects.get()
    assert (placement.observed, placement.reason) == ("ready", "Internal: no weights")
    assert placement.versions == [
        {"number": 3, "state": "LOADING", "reason": ""},
        {"number": 2, "state": "UNAVAILABLE", "reason": "Internal: no weights"},
        {"number": 1, "state": "READY", "reason": ""},
    ]


@pytest.mark.parametrize(
    ("known", "observed"),
    [
        ({}, "unloaded"),
        ({1: ("LOADING", "")}, "loading"),
        ({1: ("READY", "")}, "ready"),
        ({1: ("UNLOADING", "")}, "unloading"),
        ({1: ("UNAVAILABLE", "unloaded")}, "unloaded"),
        ({1: ("UNAVAILABLE", "Internal: no")}, "unavailable"),
        ({1: ("READY", ""), 2: ("UNAVAILABLE", "Internal: no")}, "degraded"),
        ({1: ("UNLOADING", ""), 2: ("READY", "")}, "ready"),
    ],
)
def test_a_placement_shows_the_model_as_a_whole(
    server: Server, fake: FakeTriton, known: dict[int, tuple[str, str]], observed: str
) -> None:
    fake.models["m"] = FakeModel(known=known)

    observe(server)

    assert _on(server) == {"m": observed}


def test_a_model_whose_folder_is_gone_is_absent(server: Server, fake: FakeTriton) -> None:
    fake.models["m"] = FakeModel()
    observe(server)
    del fake.models["m"]

    observe(server)

    assert _on(server) == {"m": "absent"}


def test_foreign_changes_are_shown_and_not_undone(place: Place, fake: FakeTriton) -> None:
    placement = place(state="READY")
    Placement.objects.update(desired="loaded")
    observe(placement.server)

    fake.models["model"].show("UNAVAILABLE", "unloaded")
    observe(placement.server)

    assert _on(placement.server) == {"model": "unloaded"}
    assert not Operation.objects.exists()


def test_a_restart_brings_back_what_should_be_loaded(
    place: Place, server: Server, fake: FakeTriton
) -> None:
    for name in ("wanted", "unmanaged", "unwanted", "broken"):
        place(name, state="READY")
    Placement.objects.filter(model__name="unwanted").update(desired="unloaded")
    Placement.objects.filter(model__name__in=["wanted", "broken"]).update(desired="loaded")
    broken = Placement.objects.get(model__name="broken")
    OperationFactory.create(placement=broken, state="failed", finished_at=timezone.now())
    observe(server)
    fake.restart()

    observe(server)

    operation = Operation.objects.exclude(state="failed").get()
    assert operation.placement.model.name == "wanted"
    assert (operation.kind, operation.requested_by_label) == ("load", "system")
    finish(operation)
    assert _on(server)["wanted"] == "ready"
    assert AuditEntry.objects.filter(action="server.restart").count() == 1


def test_a_restart_while_nobody_looked_is_found_afterwards(
    place: Place, server: Server, fake: FakeTriton
) -> None:
    placement = place()
    finish(ask(placement, "load"))
    with fake.down():
        for _look in range(3):
            observe(server)
        assert (server.state, _on(server)) == ("unreachable", {"model": "unknown"})
    fake.restart()

    observe(server)

    assert Operation.objects.filter(requested_by_label="system", kind="load").count() == 2


def test_one_lost_answer_is_no_outage(place: Place, server: Server, fake: FakeTriton) -> None:
    place(state="READY")
    observe(server)

    with fake.down():
        observe(server)
        first = (server.state, _on(server))
        observe(server)
        observe(server)

    assert first == ("online", {"model": "ready"})
    assert (server.state, server.state_reason) == ("unreachable", {"code": "connect_failed"})
    assert Placement.objects.get().ready_versions == [1]
    observe(server)
    assert (server.state, server.failed_looks, _on(server)) == ("online", 0, {"model": "ready"})


@pytest.mark.parametrize(
    ("mood", "code"),
    [
        ("garbage", "bad_answer"),
        ("not_a_list", "bad_answer"),
        ("redirect", "redirected"),
        ("huge", "too_large"),
        ("failing", "bad_status"),
        ("silent", "timed_out"),
    ],
)
def test_an_answer_that_is_none_makes_a_server_unreachable(
    server: Server, fake: FakeTriton, mood: str, code: str
) -> None:
    fake.mood = mood  # type: ignore[assignment]  # one of its moods

    observe(server)

    assert (server.state, server.state_reason["code"]) == ("unreachable", code)
    assert not Placement.objects.exists()


def test_a_closed_repository_leaves_the_server_degraded(server: Server, fake: FakeTriton) -> None:
    fake.mood = "restricted"

    observe(server)

    assert (server.state, server.state_reason) == ("degraded", {"code": "repository_refused"})
    assert server.control_mode == Server.ControlMode.READ_ONLY


def test_a_server_without_explicit_control_is_read_only(server: Server, fake: FakeTriton) -> None:
    fake.is_explicit = False

    observe(server)

    assert (server.state, server.control_mode) == ("online", "read_only")


def test_a_look_that_finds_nothing_new_writes_once(
    place: Place, server: Server, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(30):
        place(f"model-{number}", state="READY")
    observe(server)
    Server.objects.update(looked_at=None)

    # Savepoint, claim, mark, release; seen; placements.
    with django_assert_num_queries(6):
        servers_observe()


def test_a_server_is_looked_at_every_two_seconds(server: Server) -> None:
    servers_observe()
    first = Server.objects.get().looked_at
    servers_observe()
    assert Server.objects.get().looked_at == first

    Server.objects.update(looked_at=timezone.now() - timedelta(seconds=2))
    servers_observe()

    assert Server.objects.get().looked_at != first


def test_a_disabled_server_is_not_looked_at(server: Server) -> None:
    Server.objects.update(is_enabled=False)

    assert observe(server).looked_at is None


def test_an_old_look_does_not_overwrite_a_newer_one(place: Place, server: Server) -> None:
    place(state="READY")
    observe(server)
    old = ServerSeen(server.pk, failure={"code": "timed_out"})

    server_observe(old, looked_at=timezone.now() - timedelta(minutes=1))

    assert Server.objects.get().failed_looks == 0


@pytest.mark.django_db(transaction=True)
def test_two_looks_at_once_discover_a_model_once(server: Server) -> None:
    now = timezone.now()
    Server.objects.update(looked_at=now)
    seen = ServerSeen(server.pk, models={"m": ModelSeen("m", (VersionSeen(1, "READY"),))})
    write = partial(server_observe, seen, looked_at=now)

    outcomes = at_once([write, write])

    assert outcomes == [None, None]
    assert Placement.objects.count() == 1


def test_the_gateway_is_told_when_a_version_becomes_ready(
    place: Place,
    server: Server,
    fake: FakeTriton,
    empty_redis: None,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    place(state="LOADING")
    observe(server)

    with django_capture_on_commit_callbacks(execute=True):
        observe(server)
    unchanged = connection().get("inferadmin.version.config")
    fake.models["model"].show("READY")
    with django_capture_on_commit_callbacks(execute=True):
        observe(server)

    assert unchanged is None
    assert connection().get("inferadmin.version.config") == b"1"


def test_an_unreadable_key_is_told_and_stops_nobody_else(server: Server) -> None:
    other = ServerFactory.create(api_key_encrypted="nonsense", url=server.url)

    servers_observe()

    other.refresh_from_db()
    server.refresh_from_db()
    assert other.state_reason == {"code": "key_unreadable"}
    assert server.state == Server.State.ONLINE

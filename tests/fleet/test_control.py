"""Operations on a Triton that does as it is told."""

import pytest

from apps.core.audit import history_of
from apps.fleet.models import Operation, Placement, Server
from apps.fleet.services.control import operations_advance
from tests.fleet.conftest import Place, advance, age, ask, finish, observe
from tests.support.fake_triton import FakeTriton


def _seen(placement: Placement) -> tuple[str, list[int]]:
    placement.refresh_from_db()
    return placement.observed, placement.ready_versions


def test_a_load_ends_when_the_index_and_the_model_say_ready(place: Place, fake: FakeTriton) -> None:
    placement = place(on_disk=[1, 2])

    operation = finish(ask(placement, "load"))

    assert (operation.state, operation.verdict) == ("done", {"code": "loaded", "versions": [2, 1]})
    assert _seen(placement) == ("ready", [2, 1])
    assert fake.commands == [("load", "model")]
    assert history_of(placement)[0].action == "operation.done"


def test_a_load_passes_through_all_states(place: Place) -> None:
    operation = ask(place(), "load")

    states = [operation.state]
    while operation.is_open:
        states.append(advance(operation).state)

    assert states == ["pending", "observing", "done"]
    assert operation.dispatched_at is not None
    assert operation.finished_at is not None


def test_a_load_longer_than_the_command_may_take_still_ends_loaded(
    place: Place, fake: FakeTriton
) -> None:
    operation = finish(ask(place(load_seconds=3.5), "load"))

    assert operation.state == Operation.State.DONE
    assert operation.is_accepted is None
    assert fake.sent("load") == 1


def test_the_first_try_of_a_long_load_shows_as_loading(place: Place) -> None:
    placement = place(load_seconds=4)
    operation = advance(ask(placement, "load"))

    observe(placement.server)

    assert operation.state == Operation.State.OBSERVING
    assert _seen(placement) == ("loading", [])


def test_the_servers_reason_is_told_without_paths_and_traceback(place: Place) -> None:
    reason = (
        "Internal: ValueError: no weights in /srv/models/m/1/w.bin\n\nAt:\n  /srv/m.py(5): init"
    )

    operation = finish(ask(place(load_error=reason), "load"))

    assert (operation.state, operation.verdict) == ("failed", {"code": "load_failed"})
    assert operation.reason.endswith("Internal: ValueError: no weights in w.bin")
    assert "/srv" not in operation.reason


def test_a_failure_that_comes_after_the_answer_was_given_up_is_read_from_the_index(
    place: Place,
) -> None:
    placement = place(load_seconds=3, load_error="Internal: no weights")

    operation = finish(ask(placement, "load"))

    assert operation.verdict == {"code": "load_failed"}
    assert operation.reason == "Internal: no weights"
    placement.refresh_from_db()
    assert (placement.observed, placement.reason) == ("unavailable", "Internal: no weights")


def test_a_folder_that_cannot_be_read_is_tried_once_more(place: Place, fake: FakeTriton) -> None:
    failed = finish(ask(place("broken", failing_polls=-1), "load"))
    copied = finish(ask(place("half-copied", failing_polls=1), "load"))

    assert (failed.state, failed.verdict) == ("failed", {"code": "poll_failed"})
    assert copied.state == Operation.State.DONE
    assert fake.commands.count(("load", "broken")) == 2


def test_a_model_that_the_repository_does_not_have_is_not_loaded(
    place: Place, fake: FakeTriton
) -> None:
    placement = place()
    del fake.models["model"]

    operation = finish(ask(placement, "load"))

    assert operation.verdict == {"code": "not_in_repository"}
    assert fake.commands == []


def test_a_yes_without_a_ready_model_is_a_failure(place: Place) -> None:
    operation = finish(ask(place(lies=True), "load"))

    assert (operation.state, operation.verdict) == ("failed", {"code": "not_ready"})


def test_ready_in_the_index_is_not_enough(place: Place) -> None:
    operation = ask(place(is_ready_itself=False), "load")
    for _round in range(4):
        advance(operation)
    assert operation.is_open

    age(operation, 400)
    finish(operation)

    assert operation.verdict == {"code": "not_ready_itself", "versions": [1]}


def test_versions_that_triton_drops_silently_are_missed(place: Place) -> None:
    config = {"version_policy": {"specific": {"versions": [1, 7]}}}

    operation = finish(ask(place(config=config), "load"))

    assert operation.verdict == {"code": "versions_missing", "missing": [7], "ready": [1]}


def test_a_load_of_a_ready_model_sends_nothing(place: Place, fake: FakeTriton) -> None:
    operation = finish(ask(place(state="READY"), "load"))

    assert operation.verdict == {"code": "ready_already", "versions": [1]}
    assert fake.commands == []


def test_a_load_that_somebody_else_began_is_watched(place: Place, fake: FakeTriton) -> None:
    operation = advance(ask(place(state="LOADING"), "load"))
    assert operation.state == Operation.State.OBSERVING

    fake.models["model"].show("READY")
    finish(operation)

    assert operation.verdict["code"] == "loaded"
    assert fake.commands == []


def test_a_load_that_never_ends_stalls_at_its_deadline(place: Place, fake: FakeTriton) -> None:
    placement = place(load_hangs=True)
    operation = advance(ask(placement, "load"))
    assert advance(operation).state == Operation.State.OBSERVING

    age(operation, 301)
    finish(operation)

    assert operation.state == Operation.State.STALLED
    assert operation.verdict["code"] == "load_hangs"
    observe(placement.server)
    assert _seen(placement) == ("stalled", [])
    assert fake.sent("load") == 1


def test_hung_loads_stop_all_loads_before_the_last_thread_is_gone(
    place: Place, server: Server
) -> None:
    for number in range(3):
        operation = ask(place(f"hung-{number}", load_hangs=True), "load")
        advance(operation)
        age(operation, 301)
        finish(operation)

    last = finish(ask(place("good"), "load"))

    states = list(Operation.objects.order_by("created_at").values_list("state", flat=True))
    assert states == ["stalled", "stalled", "needs_restart", "needs_restart"]
    assert last.verdict == {"code": "server_needs_restart", "hung": 3}
    observe(server)
    assert (server.state, server.state_reason) == (
        "degraded",
        {"code": "needs_restart", "hung": 3},
    )


def test_two_loads_at_most_are_open_on_a_server(place: Place, fake: FakeTriton) -> None:
    slow = [ask(place(f"slow-{number}", load_seconds=3), "load") for number in range(3)]

    operations_advance()
    states = sorted(Operation.objects.values_list("state", flat=True))
    for operation in slow:
        finish(operation)

    assert states == ["observing", "observing", "pending"]
    assert {operation.state for operation in slow} == {"done"}


def test_an_unload_waits_for_requests_to_drain(place: Place) -> None:
    placement = place(state="READY", unload_seconds=0.5)

    operation = finish(ask(placement, "unload"))

    assert (operation.state, operation.verdict) == ("done", {"code": "unloaded"})
    assert _seen(placement) == ("unloaded", [])


def test_an_unload_of_what_is_not_loaded_sends_nothing(place: Place, fake: FakeTriton) -> None:
    operation = finish(ask(place(), "unload"))

    assert operation.verdict == {"code": "unloaded_already"}
    assert fake.commands == []


def test_an_unload_that_never_ends_stalls(place: Place) -> None:
    placement = place(state="READY", unload_hangs=True)
    operation = advance(ask(placement, "unload"))

    age(operation, 121)
    finish(operation)

    assert (operation.state, operation.verdict["code"]) == ("stalled", "unload_hangs")
    assert _seen(placement) == ("stalled", [])


def test_an_unload_that_changes_nothing_is_a_failure(place: Place) -> None:
    operation = advance(ask(place(state="READY", lies=True), "unload"))

    age(operation, 11)
    finish(operation)

    assert (operation.state, operation.verdict) == ("failed", {"code": "nothing_changed"})


def test_a_failed_model_that_was_unloaded_shows_as_unloaded(place: Place) -> None:
    placement = place(load_error="Internal: no weights")
    finish(ask(placement, "load"))

    operation = finish(ask(placement, "unload"))

    assert operation.state == Operation.State.DONE
    placement.refresh_from_db()
    assert (placement.observed, placement.reason) == ("unloaded", "")


def test_a_reload_is_an_unload_and_a_load(place: Place, fake: FakeTriton) -> None:
    placement = place(state="READY")

    operation = finish(ask(placement, "reload"))

    assert operation.verdict == {"code": "reloaded", "versions": [1]}
    assert fake.commands == [("unload", "model"), ("load", "model")]
    assert _seen(placement) == ("ready", [1])


def test_a_reload_loads_again_when_the_old_copy_does_not_let_go(
    place: Place, fake: FakeTriton
) -> None:
    operation = advance(ask(place(state="READY", unload_hangs=True), "reload"))
    assert advance(operation).state == Operation.State.OBSERVING

    age(operation, 16)
    finish(operation)

    assert operation.verdict["code"] == "reloaded"
    assert fake.commands == [("unload", "model"), ("load", "model")]


def test_a_server_that_is_away_for_a_moment_costs_nothing(place: Place, fake: FakeTriton) -> None:
    operation = ask(place(load_seconds=2.5), "load")
    with fake.down():
        assert advance(operation).state == Operation.State.PENDING
    advance(operation)
    with fake.down():
        assert advance(operation).state == Operation.State.OBSERVING

    finish(operation)

    assert operation.state == Operation.State.DONE
    assert fake.sent("load") == 1


def test_a_server_that_stays_away_ends_the_operation(place: Place, fake: FakeTriton) -> None:
    operation = ask(place(), "load")
    with fake.down():
        advance(operation)
        age(operation, 301)
        finish(operation)

    assert operation.verdict == {"code": "server_unreachable", "cause": "connect_failed"}


def test_a_load_that_a_restart_has_forgotten_is_sent_again(place: Place, fake: FakeTriton) -> None:
    operation = advance(ask(place(load_hangs=True), "load"))
    advance(operation)
    fake.models["model"].load_hangs = False
    fake.restart()

    age(operation, 11)
    finish(operation)

    assert operation.state == Operation.State.DONE
    assert fake.sent("load") == 2


def test_a_server_that_allows_no_control_says_so_once(place: Place, fake: FakeTriton) -> None:
    fake.is_explicit = False

    operation = finish(ask(place(), "load"))

    assert (operation.state, operation.verdict) == ("failed", {"code": "read_only"})
    assert operation.attempts == 1


@pytest.mark.parametrize("mood", ["garbage", "not_a_list", "redirect", "huge", "failing"])
def test_answers_that_are_no_index_change_nothing(
    place: Place, fake: FakeTriton, mood: str
) -> None:
    placement = place()
    fake.mood = mood  # type: ignore[assignment]

    operation = advance(ask(placement, "load"))

    assert operation.state == Operation.State.PENDING
    assert fake.commands == []


def test_an_operation_on_a_server_that_was_disabled_ends(place: Place, server: Server) -> None:
    operation = ask(place(), "load")
    Server.objects.filter(pk=server.pk).update(is_enabled=False)

    assert finish(operation).verdict == {"code": "server_disabled"}


def test_without_grpc_commands_go_over_http(place: Place, server: Server, fake: FakeTriton) -> None:
    Server.objects.filter(pk=server.pk).update(grpc_address="")

    loaded = finish(ask(place("good"), "load"))
    failed = finish(ask(place("bad", load_error="Internal: no"), "load"))
    slow = finish(ask(place("slow", load_seconds=3), "load"))

    assert [item.state for item in (loaded, failed, slow)] == ["done", "failed", "done"]
    assert fake.sent("load") == 3

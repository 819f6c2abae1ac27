"""The fleet's controller on a real Triton."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from apps.fleet.models import Placement, Server
from inferadmin.embedded import triton as embedded_triton
from inferadmin.embedded.processes import running
from inferadmin.embedded.triton import Triton
from tests.factories import ServerFactory
from tests.fleet.conftest import advance, ask, finish, observe

pytestmark = [pytest.mark.e2e, pytest.mark.django_db]

CONFIG = """
name: "{name}"
backend: "python"
input  [ {{ name: "X" data_type: TYPE_FP32 dims: [ 1 ] }} ]
output [ {{ name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }} ]
"""
GOOD = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
RAISES = (
    GOOD + "\n    def initialize(self, args):\n        raise ValueError('no weights in /srv/w')\n"
)

Write = Callable[..., None]


def _record(triton: Triton) -> Server:
    server = ServerFactory.create(url=triton.url, grpc_address=triton.grpc_address)
    return observe(server)


def _write_model(triton: Triton, name: str, code: str | None, *, config: str = CONFIG) -> None:
    folder = triton.repository / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(config.format(name=name))
    if code is not None:
        (folder / "1" / "model.py").write_text(code)


def _placement(name: str) -> Placement:
    return Placement.objects.get(model__name=name)


@pytest.fixture
def write(triton: Triton) -> Iterator[Write]:
    """Puts models into the shared repository, and takes them out again."""
    written: list[str] = []

    def make(name: str, code: str | None, **options: str) -> None:
        written.append(name)
        _write_model(triton, name, code, **options)

    yield make
    for name in written:
        shutil.rmtree(triton.repository / name, ignore_errors=True)


@pytest.fixture
def own_triton(tmp_path: Path) -> Triton:
    """A Triton that is not running yet, for tests that break it."""
    reason = embedded_triton.obstacle()
    if reason is not None:
        pytest.skip(f"NO REAL TRITON: {reason}")
    engine = Triton(repository=tmp_path / "repository", backends=tmp_path / "backends")
    _write_model(engine, "good", GOOD)
    return engine


@pytest.mark.parametrize(
    ("name", "versions"), [("smollm2", [1]), ("language-id", [2, 1]), ("minilm", [1])]
)
def test_each_seeded_model_is_loaded_reloaded_and_unloaded(
    triton: Triton, name: str, versions: list[int]
) -> None:
    _record(triton)
    placement = _placement(name)

    loaded = finish(ask(placement, "load"), seconds=60)
    again = finish(ask(placement, "load"))
    reloaded = finish(ask(placement, "reload"), seconds=60)
    ready = _placement(name).ready_versions
    unloaded = finish(ask(placement, "unload"), seconds=30)

    assert loaded.verdict == {"code": "loaded", "versions": versions}
    assert again.verdict == {"code": "ready_already", "versions": versions}
    assert reloaded.verdict == {"code": "reloaded", "versions": versions}
    assert (ready, _placement(name).observed) == (versions, "unloaded")
    assert unloaded.verdict == {"code": "unloaded"}


def test_a_model_that_raises_tells_why(triton: Triton, write: Write) -> None:
    write("raises", RAISES)
    server = _record(triton)

    operation = finish(ask(_placement("raises"), "load"), seconds=30)
    observe(server)

    assert operation.verdict == {"code": "load_failed"}
    assert operation.reason.endswith("ValueError: no weights in w")
    assert _placement("raises").observed == "unavailable"
    assert finish(ask(_placement("raises"), "unload")).verdict == {"code": "unloaded"}


def test_a_config_that_cannot_be_read_is_told_what_to_check(triton: Triton, write: Write) -> None:
    write("broken", GOOD, config="what: {{}}")
    _record(triton)

    operation = finish(ask(_placement("broken"), "load"), seconds=30)

    assert (operation.state, operation.verdict) == ("failed", {"code": "poll_failed"})


def test_folders_with_unsafe_names_are_left_out(triton: Triton, write: Write) -> None:
    for name in ("a..b", "with space", ".hidden"):
        write(name, GOOD)

    _record(triton)

    assert sorted(Placement.objects.values_list("model__name", flat=True)) == [
        "language-id", "minilm", "smollm2",
    ]  # fmt: skip


def test_a_restart_is_noticed_and_made_good(own_triton: Triton, tmp_path: Path) -> None:
    with running(own_triton.command(), tmp_path):
        server = _record(own_triton)
        finish(ask(_placement("good"), "load"), seconds=30)
    for _look in range(3):
        observe(server)
    assert (server.state, _placement("good").observed) == ("unreachable", "unknown")

    with running(own_triton.command(), tmp_path):
        observe(server)
        operation = _placement("good").latest_operation
        assert operation is not None
        assert operation.requested_by_label == "system"
        finish(operation, seconds=30)

    assert operation.verdict["code"] == "loaded"


def test_a_reload_repairs_a_model_whose_process_has_died(
    own_triton: Triton, tmp_path: Path
) -> None:
    with running(own_triton.command(), tmp_path):
        _record(own_triton)
        placement = _placement("good")
        finish(ask(placement, "load"), seconds=30)
        dead = _stub_of(own_triton)
        dead.kill()

        # A load would do nothing: the index still says ready.
        assert finish(ask(placement, "load")).verdict["code"] == "ready_already"
        operation = finish(ask(placement, "reload"), seconds=60)

        assert operation.verdict["code"] == "reloaded"
        assert _stub_of(own_triton).pid != dead.pid


def _stub_of(triton: Triton) -> psutil.Process:
    """The process that runs the model `good` of this Triton."""
    folder = str(triton.repository / "good")
    return next(
        process
        for process in psutil.process_iter()
        if process.status() != psutil.STATUS_ZOMBIE and any(folder in a for a in _argv(process))
    )


def _argv(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def test_a_version_folder_without_a_model_hangs_and_is_called_so(
    own_triton: Triton, tmp_path: Path
) -> None:
    _write_model(own_triton, "empty", None)
    with running(own_triton.command(), tmp_path):
        server = _record(own_triton)
        placement = _placement("empty")
        placement.model.load_deadline_seconds = 3
        placement.model.save()
        operation = ask(placement, "load")
        began = time.monotonic()
        advance(operation)
        longest_round = time.monotonic() - began

        finish(operation, seconds=30)
        observe(server)

        assert operation.verdict["code"] == "load_hangs"
        assert longest_round < 5
        assert _placement("empty").observed == "stalled"
        # One hung load does not stop the others.
        assert finish(ask(_placement("good"), "load"), seconds=30).state == "done"

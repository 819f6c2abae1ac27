"""The folder of an installation: one supervisor at a time, private secrets, remnants found."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from inferadmin.embedded.processes import Child, Command
from inferadmin.embedded.var import Credentials, LockedError, Var


@pytest.fixture
def var(tmp_path: Path) -> Var:
    return Var(tmp_path)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child(Command("sample", ("sleep", "60"), is_ready=bool), tmp_path)
    child.start()
    yield child
    child.stop()


def test_second_supervisor_is_refused_and_told_who_runs(var: Var) -> None:
    with var.lock(), pytest.raises(LockedError) as refusal:
        var.lock()

    assert psutil.pid_exists(refusal.value.pid)


def test_lock_is_free_again_after_its_holder(var: Var) -> None:
    var.lock().close()

    var.lock().close()


def test_secret_key_is_made_once_and_readable_by_its_owner_alone(var: Var) -> None:
    key = var.secret_key()

    assert var.secret_key() == key
    assert (var.root / "secret_key").stat().st_mode & 0o777 == 0o600
    assert len(key) >= 50


def test_credentials_come_back_and_are_readable_by_their_owner_alone(var: Var) -> None:
    saved = Credentials(url="http://here", username="admin", password="p")

    var.save_credentials(saved)

    assert var.credentials() == saved
    assert (var.root / "credentials.json").stat().st_mode & 0o777 == 0o600


def test_broken_credentials_count_as_none(var: Var) -> None:
    (var.root / "credentials.json").write_text("{")

    assert var.credentials() == {}


def test_what_a_killed_run_left_is_ended(var: Var, child: Child) -> None:
    var.remember([child])

    assert var.clean_up() == ["sample"]
    assert child.exit_code == -signal.SIGTERM


def test_stranger_with_the_process_id_of_an_old_child_is_left_alone(var: Var, child: Child) -> None:
    var.remember([child])
    run = json.loads((var.root / "run.json").read_text())
    run[0]["started"] -= 100
    (var.root / "run.json").write_text(json.dumps(run))

    assert var.clean_up() == []
    assert child.is_running


def test_group_whose_leader_has_ended_is_found(var: Var, tmp_path: Path) -> None:
    argv = ("sh", "-c", "sleep 60 & echo $!; sleep 60")
    leader = Child(Command("sample", argv, is_ready=bool), tmp_path)
    leader.start()
    while not leader.log_path.read_text():
        pass
    follower = psutil.Process(int(leader.log_path.read_text()))
    var.remember([leader])
    psutil.Process(leader.pid).kill()
    assert leader._process is not None
    leader._process.wait()

    assert var.clean_up() == ["sample"]
    _gone, alive = psutil.wait_procs([follower], timeout=5)
    assert not alive


def test_nothing_is_cleaned_up_in_a_new_folder(var: Var) -> None:
    assert var.clean_up() == []

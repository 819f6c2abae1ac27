"""Children that end are started again, ever more slowly."""

import time
from pathlib import Path

from inferadmin.embedded.keeper import Keeper
from inferadmin.embedded.processes import Child, Command


def keeper_of(child: Child) -> tuple[Keeper, list[str]]:
    said: list[str] = []
    keeper = Keeper(say=said.append, changed=lambda: None)
    keeper.start(child)
    return keeper, said


def tick_until(keeper: Keeper, child: Child, *, running: bool) -> float:
    began = time.monotonic()
    while child.is_running is not running:
        assert time.monotonic() - began < 10
        keeper.tick()
        time.sleep(0.02)
    return time.monotonic() - began


def test_killed_child_is_started_again_and_this_is_said(tmp_path: Path) -> None:
    child = Child(Command("sample", ("sleep", "60"), is_ready=bool), tmp_path)
    keeper, said = keeper_of(child)
    first = child.pid

    assert child._process is not None
    child._process.kill()
    child._process.wait()
    tick_until(keeper, child, running=True)

    assert child.pid != first
    assert said == [
        f"sample was ended by SIGKILL; starting it again in 0.5 s (log: {child.log_path})"
    ]
    keeper.stop()
    assert not child.is_running


def test_child_that_keeps_ending_is_started_ever_more_slowly(tmp_path: Path) -> None:
    child = Child(Command("sample", ("sh", "-c", "exit 7"), is_ready=bool), tmp_path)
    keeper, said = keeper_of(child)

    deadline = time.monotonic() + 10
    while len(said) < 3 and time.monotonic() < deadline:
        keeper.tick()
        time.sleep(0.02)
    keeper.stop()

    assert [line.split("again in ")[1].split(" s")[0] for line in said] == ["0.5", "1", "2"]
    assert "exit code 7" in said[0]

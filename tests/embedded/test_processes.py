"""Children start, say when they are ready, and end with all that they have started."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from inferadmin.embedded.processes import Child, ChildError, Command, running


def python(code: str, **values: object) -> Command:
    values.setdefault("is_ready", lambda: True)
    argv = (sys.executable, "-c", textwrap.dedent(code))
    return Command(name="sample", argv=argv, **values)  # type: ignore[arg-type]  # free-form here


def test_child_is_running_inside_the_block_and_gone_after_it(tmp_path: Path) -> None:
    with running(python("import time; time.sleep(60)"), tmp_path) as child:
        assert psutil.pid_exists(child.pid)

    assert child.exit_code == -signal.SIGTERM


def test_child_that_ends_at_once_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    child = Child(python("print('no space left'); raise SystemExit(3)", is_ready=bool), tmp_path)
    child.start()

    with pytest.raises(ChildError) as problem:
        child.wait_until_ready()

    assert "ended with exit code 3" in str(problem.value)
    assert "no space left" in str(problem.value)


def test_child_that_is_never_ready_is_reported(tmp_path: Path) -> None:
    command = python("import time; time.sleep(60)", is_ready=bool, ready_seconds=0.1)

    with pytest.raises(ChildError, match="was not ready"), running(command, tmp_path):
        pass


def test_child_that_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    code = """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("deaf", flush=True)
        time.sleep(60)
    """
    log = tmp_path / "sample.log"
    command = python(code, is_ready=lambda: "deaf" in log.read_text(), stop_seconds=0.2)

    with running(command, tmp_path) as child:
        pass

    assert child.exit_code == -signal.SIGKILL


def test_grandchildren_end_with_the_child(tmp_path: Path) -> None:
    code = """
        import subprocess, time
        print(subprocess.Popen(["sleep", "60"]).pid, flush=True)
        time.sleep(60)
    """
    log = tmp_path / "sample.log"

    with running(python(code, is_ready=lambda: bool(log.read_text())), tmp_path):
        grandchild = psutil.Process(int(log.read_text()))

    _gone, alive = psutil.wait_procs([grandchild], timeout=5)
    assert not alive


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's tie exists on Linux only")
def test_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent_code = f"""
        import sys, time
        from pathlib import Path
        from inferadmin.embedded.processes import Child, Command
        child = Child(
            Command("sample", ("sleep", "60"), is_ready=bool), Path({str(tmp_path)!r})
        )
        child.start()
        print(child.pid, flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", textwrap.dedent(parent_code)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))

    parent.kill()
    parent.wait()
    parent.stdout.close()

    _gone, alive = psutil.wait_procs([child], timeout=5)
    assert not alive


def test_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    log = tmp_path / "sample.log"
    log.write_bytes(b"x" * (10 * 1024 * 1024 + 1))

    with running(python("print('new')\nimport time; time.sleep(60)"), tmp_path):
        deadline = time.monotonic() + 5
        while not log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)

    assert log.stat().st_size < 100
    assert (tmp_path / "sample.log.1").exists()

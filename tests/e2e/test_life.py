"""The supervisor: starts once, ends everything, cleans up after its own death, keeps the data."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.stack import Stack, eventually, stack_in

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that these stories may end and start as they like."""
    with stack_in(tmp_path_factory.mktemp("life")) as stack:
        yield stack


def names(stack: Stack) -> list[str]:
    with stack.api() as api:
        answer = api.get("/teams").raise_for_status().json()
    return [team["name"] for team in answer["results"]]


def refused(stack: Stack) -> str:
    """What a further start in the same folder or on the same port says."""
    before = len(stack.output)
    assert stack.launch().wait(30) == 1
    return stack.output[before:]


def test_start_says_where_it_is_and_how_to_ask_it(own: Stack) -> None:
    assert own.url in own.output
    assert own.credentials["password"] in own.output
    assert f"curl -N {own.url}/v1/chat/completions" in own.output
    assert httpx.get(f"{own.url}/readyz").status_code == 200


def test_credentials_are_complete_and_private(own: Stack) -> None:
    path = own.folder / "var" / "credentials.json"

    assert set(own.credentials) == {"url", "username", "password", "api_key", "management_token"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_second_start_in_the_same_folder_is_refused(own: Stack) -> None:
    assert f"runs already in {own.folder / 'var'} (process {own.pid})" in refused(own)


def test_start_on_a_busy_port_says_which_and_what_to_do(own: Stack, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    other = Stack(tmp_path, port=own.port)

    said = refused(other)

    assert f"port {own.port} of 127.0.0.1 is not free" in said
    assert f"INFERADMIN_PORT={own.port + 1} make up" in said


def test_end_leaves_no_process_and_the_next_start_has_the_data(own: Stack) -> None:
    before = own.credentials
    with own.api() as api:
        api.post("/teams", json={"name": "kept"}).raise_for_status()

    assert own.stop(signal.SIGINT) == 0
    assert own.remnants() == []
    assert own.start() < 40

    assert own.credentials == before
    assert "kept" in names(own)


def test_start_after_a_killed_supervisor_finds_everything_ended(own: Stack) -> None:
    os.kill(own.pid, signal.SIGKILL)
    assert own._process is not None
    own._process.wait()

    own.start()

    assert "demo" in names(own)
    running = [line for line in own.remnants() if "bin/postgres" in line]
    assert len(running) == 1


def test_remnant_that_outlived_its_supervisor_is_ended_by_the_next(own: Stack) -> None:
    # A stopped process does not react to the kernel's signal, so it does outlive its supervisor.
    worker = own.pid_of("worker")
    os.kill(worker, signal.SIGSTOP)
    os.kill(own.pid, signal.SIGKILL)
    assert own._process is not None
    own._process.wait()
    before = len(own.output)

    own.start()

    assert "an earlier run was killed; ended what it left" in own.output[before:]
    assert "worker" in own.output[before:].split("ended what it left:")[1].splitlines()[0]
    eventually(lambda: not psutil.pid_exists(worker))

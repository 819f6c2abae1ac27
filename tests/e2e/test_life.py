"""The supervisor: starts once, ends everything, cleans up after its own death, keeps the data."""

import os
import signal
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.stack import Stack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def names(stack: Stack) -> list[str]:
    with stack.api() as api:
        answer = api.get("/teams").raise_for_status().json()
    return [team["name"] for team in answer["results"]]


def refused(stack: Stack) -> str:
    """What a further start in the same folder or on the same port says."""
    before = len(stack.output)
    assert stack.launch().wait(30) == 1
    return stack.output[before:]


def test_start_says_where_it_is_and_how_to_ask_it(stack: Stack) -> None:
    assert stack.url in stack.output
    assert stack.credentials["password"] in stack.output
    assert f"curl -N {stack.url}/v1/chat/completions" in stack.output
    assert httpx.get(f"{stack.url}/readyz").status_code == 200


def test_credentials_are_complete_and_private(stack: Stack) -> None:
    path = stack.folder / "var" / "credentials.json"

    assert set(stack.credentials) == {"url", "username", "password", "api_key", "management_token"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_second_start_in_the_same_folder_is_refused(stack: Stack) -> None:
    assert f"runs already in {stack.folder / 'var'} (process {stack.pid})" in refused(stack)


def test_start_on_a_busy_port_says_which_and_what_to_do(stack: Stack, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    other = Stack(tmp_path, port=stack.port)

    said = refused(other)

    assert f"port {stack.port} of 127.0.0.1 is not free" in said
    assert f"INFERADMIN_PORT={stack.port + 1} make up" in said


def test_end_leaves_no_process_and_the_next_start_has_the_data(stack: Stack) -> None:
    before = stack.credentials
    with stack.api() as api:
        api.post("/teams", json={"name": "kept"}).raise_for_status()

    assert stack.stop(signal.SIGINT) == 0
    assert stack.remnants() == []
    assert stack.start() < 40

    assert stack.credentials == before
    assert "kept" in names(stack)


def test_start_after_a_killed_supervisor_finds_everything_ended(stack: Stack) -> None:
    stack.die()

    stack.start()

    assert "demo" in names(stack)
    running = [line for line in stack.remnants() if "bin/postgres" in line]
    assert len(running) == 1


def test_remnant_that_outlived_its_supervisor_is_ended_by_the_next(stack: Stack) -> None:
    # A stopped process does not react to the kernel's signal, so it does outlive its supervisor.
    worker = stack.pid_of("worker")
    os.kill(worker, signal.SIGSTOP)
    stack.die()
    before = len(stack.output)

    stack.start()

    assert "an earlier run was killed; ended what it left" in stack.output[before:]
    assert "worker" in stack.output[before:].split("ended what it left:")[1].splitlines()[0]
    eventually(lambda: not psutil.pid_exists(worker))

"""Load and unload of every seeded model over REST, on the real Triton."""

from typing import Any

import httpx
import pytest

from tests.support.stack import Stack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def placement(api: httpx.Client, name: str) -> dict[str, Any]:
    found = api.get("/placements").raise_for_status().json()["results"]
    return next(item for item in found if item["model_name"] == name)


def is_busy(api: httpx.Client, name: str) -> bool:
    newest = placement(api, name)["latest_operation"]
    return bool(newest and newest["is_open"])


def operate(api: httpx.Client, name: str, verb: str) -> dict[str, Any]:
    """Ask for an operation when none is under way, and give it back when it has ended."""
    eventually(lambda: not is_busy(api, name), seconds=30)
    answer = api.post(f"/placements/{placement(api, name)['id']}/{verb}")
    assert answer.status_code == 202, answer.text

    def ended() -> dict[str, Any] | None:
        now: dict[str, Any] = api.get(f"/operations/{answer.json()['id']}").json()
        return None if now["is_open"] else now

    operation = eventually(ended, seconds=60)
    assert operation is not None
    return operation


@pytest.mark.parametrize("name", ["smollm2", "language-id", "minilm"])
def test_model_is_unloaded_and_loaded(stack: Stack, name: str) -> None:
    with stack.api() as api:
        assert operate(api, name, "unload")["state"] == "done"
        assert placement(api, name)["ready_versions"] == []

        assert operate(api, name, "load")["state"] == "done"
        assert placement(api, name)["observed"] == "ready"


def test_load_goes_on_when_its_worker_is_killed_in_the_middle(stack: Stack) -> None:
    with stack.api() as api:
        operate(api, "smollm2", "unload")
        path = f"/placements/{placement(api, 'smollm2')['id']}/load"
        operation_id = api.post(path).raise_for_status().json()["id"]
        eventually(lambda: api.get(f"/operations/{operation_id}").json()["state"] != "pending")
        stack.kill("worker")

        eventually(lambda: not api.get(f"/operations/{operation_id}").json()["is_open"], seconds=60)

        ended = api.get(f"/operations/{operation_id}").json()
        assert (ended["state"], ended["verdict"]["code"]) == ("done", "loaded")
        # Twice only when the worker died between writing that it sends and sending.
        assert ended["attempts"] in {1, 2}
        assert placement(api, "smollm2")["observed"] == "ready"


def test_unloaded_embeddings_are_refused_with_a_reason_until_they_are_back(stack: Stack) -> None:
    headers = {"Authorization": f"Bearer {stack.credentials['api_key']}"}

    def status() -> int:
        body = {"model": "minilm", "input": "a cat"}
        url = f"{stack.url}/v1/embeddings"
        return httpx.post(url, json=body, headers=headers, timeout=30).status_code

    with stack.api() as api:
        operate(api, "minilm", "unload")
        eventually(lambda: status() == 503, seconds=5)
        operate(api, "minilm", "load")
        eventually(lambda: status() == 200, seconds=5)


def test_unknown_field_is_named(stack: Stack) -> None:
    with stack.api() as api:
        answer = api.post(f"/placements/{placement(api, 'minilm')['id']}/load", json={"when": 1})

    assert answer.status_code == 400
    assert "when" in answer.text

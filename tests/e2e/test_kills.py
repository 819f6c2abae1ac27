"""kill -9 in the middle of traffic: every request has one record, and everything comes back."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.stack import Stack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

REQUESTS = 12
# A worker's holds are given back, and what it left unfinished is recorded, within a minute.
SETTLE_SECONDS = 90
# What is not admitted leaves no record.
REFUSALS = {429, 503}


def ask(stack: Stack, request_id: str, *, route: str = "smollm2-llamacpp") -> str:
    """Stream an answer: `ok` when it came whole, `broken` after a first byte, else `refused`."""
    body = {
        "model": route,
        "stream": True,
        "max_tokens": 60,
        "messages": [{"role": "user", "content": "Tell me about cats."}],
    }
    headers = {
        "Authorization": f"Bearer {stack.credentials['api_key']}",
        "X-Request-ID": request_id,
    }
    text = ""
    try:
        with httpx.stream(
            "POST", f"{stack.url}/v1/chat/completions", json=body, headers=headers, timeout=60
        ) as answer:
            if answer.status_code in REFUSALS:
                return "refused"
            for line in answer.iter_lines():
                text += line
    except httpx.HTTPError:
        return "broken" if text else "refused"
    return "ok" if "[DONE]" in text and '"error"' not in text else "broken"


def traffic_with_kill(stack: Stack, name: str, *, route: str) -> dict[str, str]:
    """Outcome by request id of requests in the middle of which a process was killed."""
    ids = [uuid.uuid4().hex for _ in range(REQUESTS)]
    with ThreadPoolExecutor(4) as pool:
        answers = {one: pool.submit(ask, stack, one, route=route) for one in ids}
        time.sleep(1.5)
        stack.kill(name)
        return {one: answer.result() for one, answer in answers.items()}


def records(stack: Stack, request_id: str) -> list[dict[str, Any]]:
    with stack.api() as api:
        answer = api.get("/usage", params={"request_id": request_id})
    found: list[dict[str, Any]] = answer.raise_for_status().json()["results"]
    return found


def assert_one_record_each(stack: Stack, outcomes: dict[str, str]) -> None:
    """One record for all that began to answer; at most one for what never reached the gateway."""

    def missing() -> list[str]:
        begun = [one for one, outcome in outcomes.items() if outcome != "refused"]
        return [one for one in begun if not records(stack, one)]

    eventually(lambda: not missing(), seconds=SETTLE_SECONDS, every=2)
    counts = {one: len(records(stack, one)) for one in outcomes}
    assert max(counts.values()) == 1, counts


def is_answered(stack: Stack, route: str) -> bool:
    return ask(stack, uuid.uuid4().hex, route=route) == "ok"


def test_web_killed(stack: Stack) -> None:
    outcomes = traffic_with_kill(stack, "web-1", route="smollm2-llamacpp")

    eventually(lambda: is_answered(stack, "smollm2-llamacpp"), seconds=30)
    assert list(outcomes.values()).count("ok") >= 1
    assert_one_record_each(stack, outcomes)


def test_worker_killed(stack: Stack) -> None:
    outcomes = traffic_with_kill(stack, "worker", route="smollm2-llamacpp")

    assert set(outcomes.values()) == {"ok"}
    assert_one_record_each(stack, outcomes)


def test_triton_killed_and_its_models_come_back(stack: Stack) -> None:
    outcomes = traffic_with_kill(stack, "triton", route="smollm2")

    # The fallback tier answers for it meanwhile; a stream that had begun is told of the break.
    assert list(outcomes.values()).count("ok") >= REQUESTS // 2
    assert_one_record_each(stack, outcomes)
    eventually(lambda: answered_by(stack, "smollm2") == "triton-local", seconds=90, every=2)


def answered_by(stack: Stack, route: str) -> str:
    request_id = uuid.uuid4().hex
    ask(stack, request_id, route=route)
    return str(eventually(lambda: records(stack, request_id))[0]["server_name"])


def test_valkey_killed(stack: Stack) -> None:
    stack.kill("valkey")

    eventually(lambda: is_answered(stack, "smollm2-llamacpp"), seconds=30)
    eventually(lambda: httpx.get(f"{stack.url}/readyz").status_code == 200, seconds=30)


def test_postgres_killed(stack: Stack) -> None:
    stack.kill("postgres")

    assert is_answered(stack, "smollm2-llamacpp")  # the gateway needs no database to answer
    eventually(lambda: httpx.get(f"{stack.url}/readyz").status_code == 200, seconds=60)
    request_id = uuid.uuid4().hex
    ask(stack, request_id)
    eventually(lambda: records(stack, request_id), seconds=30)

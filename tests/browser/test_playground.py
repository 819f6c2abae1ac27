"""The playground: streams, stops, says what went wrong, and never trusts what a model writes.

The answers of `/v1` are scripted here; that the real gateway gives such answers is tested with it.
"""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Open

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

HOSTILE = "**Bold** <img src=x onerror=alert(1)> [bad](javascript:alert(1)) and `code`"


def answer(route: Route) -> None:
    """A stream of two chunks and the usage."""
    chunks = [
        {"choices": [{"delta": {"content": HOSTILE[:20]}}]},
        {"choices": [{"delta": {"content": HOSTILE[20:]}}]},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 21}},
    ]
    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    route.fulfill(
        content_type="text/event-stream",
        headers={"x-inferadmin-target": "triton-local/smollm2"},
        body=f"{events}data: [DONE]\n\n",
    )


def ask(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")


@pytest.fixture
def playground(open_as: Open, site: str) -> Page:
    return open_as("operator", f"{site}/playground/?route=smollm2")


def test_an_answer_is_rendered_safely_with_its_figures(playground: Page) -> None:
    playground.route("**/v1/chat/completions", answer)

    ask(playground, "Hello")

    answered = playground.locator(".answer")
    expect(answered.locator(".markdown strong")).to_have_text("Bold")
    expect(answered.locator(".markdown code")).to_have_text("code")
    expect(answered.locator("img")).to_have_count(0)
    expect(answered.locator(".markdown")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(answered.locator(".markdown a[href]")).to_have_count(0)
    expect(answered.locator("[data-slot=tokens]")).to_have_text("7 → 21")
    expect(answered.locator("[data-slot=target]")).to_have_text("triton-local/smollm2")


def test_the_conversation_and_the_settings_go_along(playground: Page) -> None:
    playground.route("**/v1/chat/completions", answer)
    ask(playground, "First")
    expect(playground.locator(".answer[aria-busy=false]")).to_have_count(1)
    playground.get_by_label("System prompt").fill("Be brief.")
    playground.get_by_label("Temperature").fill("0.5")

    with playground.expect_request("**/v1/chat/completions") as sent:
        ask(playground, "Second")

    body: dict[str, Any] = sent.value.post_data_json or {}
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert (body["temperature"], body["max_tokens"], body["stream"]) == (0.5, 256, True)
    assert sent.value.headers["authorization"].startswith("Bearer sk-ia-")


def test_stop_ends_an_answer_that_does_not_come(playground: Page) -> None:
    playground.route("**/v1/chat/completions", lambda _route: None)
    ask(playground, "Hello")

    playground.get_by_role("button", name="Stop").click()

    expect(playground.locator(".answer [data-slot=status]")).to_have_text("Stopped")
    expect(playground.get_by_role("button", name="Send")).to_be_visible()


def test_a_refusal_is_told_in_the_gateways_words(playground: Page) -> None:
    error = {"error": {"message": "the budget of 1 USD is used up", "code": "budget_exceeded"}}
    playground.route("**/v1/chat/completions", lambda route: route.fulfill(status=429, json=error))

    ask(playground, "Hello")

    expect(playground.get_by_role("alert").first).to_have_text(
        "the budget of 1 USD is used up (429 budget_exceeded)"
    )


def test_an_embedding_shows_its_size_and_first_values(playground: Page) -> None:
    vector = {"data": [{"embedding": [0.5] * 384}], "usage": {"prompt_tokens": 3}}
    playground.route("**/v1/embeddings", lambda route: route.fulfill(json=vector))
    playground.get_by_label("Embedding").check()

    ask(playground, "Hello")

    expect(playground.locator(".answer pre")).to_contain_text("384 dimensions")
    expect(playground.locator(".answer pre")).to_contain_text("[0.50000, 0.50000")


def test_clear_forgets_the_conversation(playground: Page) -> None:
    playground.route("**/v1/chat/completions", answer)
    ask(playground, "Hello")
    expect(playground.locator(".answer[aria-busy=false]")).to_have_count(1)

    playground.get_by_role("button", name="Clear").click()

    expect(playground.locator(".answer")).to_have_count(0)
    expect(playground.get_by_text("Ask something")).to_be_visible()

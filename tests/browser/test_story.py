"""The story of the product on real parts: a load watched live, an answer, what it cost."""

import re
from pathlib import Path

import openai
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.support.stack import Stack

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(420)]

LOAD_MS = 60_000
ANSWER_MS = 60_000


@pytest.fixture
def page(open_as: Open, stack: Stack) -> Page:
    found = stack.credentials
    return open_as(found["username"], stack.url, password=found["password"])


def test_a_load_is_watched_then_answers_then_shows_its_cost(
    page: Page, screenshots: Path, stack: Stack
) -> None:
    page.get_by_role("navigation", name="Main menu").get_by_role("link", name="Fleet").click()
    page.get_by_role("link", name="triton-local").click()
    row = page.locator("tbody", has=page.get_by_role("link", name="smollm2", exact=True))
    expect(row.locator(".badge")).to_have_text("Ready", timeout=LOAD_MS)

    row.get_by_role("link", name="Unload").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("goes on with")
    dialog.get_by_role("button", name="Unload").click()
    expect(row.locator(".badge")).to_have_text("Unloaded", timeout=LOAD_MS)

    row.get_by_role("button", name=re.compile("^Load")).click()
    expect(page.get_by_text("is on its way").last).to_be_visible()
    expect(row.locator(".badge")).to_have_text("Ready", timeout=LOAD_MS)

    page.goto(f"{stack.url}/playground/")
    page.get_by_label("Route", exact=True).select_option("smollm2")
    page.get_by_label("Message", exact=True).fill("Say hello in one short sentence.")
    page.get_by_label("Message", exact=True).press("Enter")
    answer = page.locator(".answer").last
    expect(answer).to_have_attribute("aria-busy", "false", timeout=ANSWER_MS)
    expect(answer.locator("[data-slot=body]")).not_to_be_empty()
    page.screenshot(path=screenshots / "story-playground.png", full_page=True)

    answer.get_by_role("link", name="Explain").click()
    expect(page.locator("main")).to_contain_text("triton-local", timeout=LOAD_MS)
    expect(page.locator("main")).to_contain_text(re.compile(r"\$0\.0*[1-9]"))
    page.screenshot(path=screenshots / "story-request.png", full_page=True)


def test_the_overview_moves_while_requests_come(
    page: Page, screenshots: Path, stack: Stack
) -> None:
    latency = page.locator("[data-live=latency_p95_ms][data-topic=overview] .number")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")

    key = stack.credentials["api_key"]
    with openai.OpenAI(base_url=f"{stack.url}/v1", api_key=key) as client:
        for _number in range(12):
            client.chat.completions.create(
                model="smollm2",
                messages=[{"role": "user", "content": "Name a colour."}],
                max_tokens=8,
            )

    expect(latency).to_have_text(re.compile(r"\d"), timeout=15_000)
    expect(page.locator("[data-series=cpu_ratio] b")).to_have_text(re.compile(r"\d"))
    page.screenshot(path=screenshots / "story-overview.png", full_page=True)


def test_a_second_page_follows_the_first(page: Page, open_as: Open, stack: Stack) -> None:
    found = stack.credentials
    other = open_as(found["username"], f"{stack.url}/models/", password=found["password"])
    other.get_by_role("link", name="language-id").click()
    followed = other.locator("tbody", has=other.get_by_role("link", name="triton-local")).first
    expect(followed.locator(".badge")).to_have_text("Ready", timeout=LOAD_MS)

    page.get_by_role("link", name="triton-local").first.click()
    row = page.locator("tbody", has=page.get_by_role("link", name="language-id", exact=True))
    row.get_by_role("button", name="Reload").click()

    expect(followed.get_by_text(re.compile("Reloading|Unloading|Loading")).first).to_be_visible()
    expect(followed.locator(".badge")).to_have_text("Ready", timeout=LOAD_MS)

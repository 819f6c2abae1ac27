"""A route from first to last, by hand."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def test_a_route_is_made_corrected_switched_off_and_deleted(open_as: Open, site: str) -> None:
    page = open_as("operator", f"{site}/routes/new/?model=smollm2&server=triton-local")
    page.locator("#id_name").fill("story-chat")

    page.get_by_role("button", name="Add target").click()
    second = page.get_by_role("group", name="Target 2")
    second.get_by_label("Server").select_option(label="llama-cpp")
    second.get_by_label("Upstream model").fill("smollm2")
    second.get_by_label("Protocol").select_option(label="Triton generate")
    second.get_by_label("Tier").fill("1")
    page.get_by_role("button", name="Save route").click()
    expect(
        second.get_by_text("llama-cpp is a server of llama.cpp; use openai or anthropic")
    ).to_be_visible()

    second.get_by_label("Protocol").select_option(label="OpenAI-compatible")
    page.get_by_role("button", name="Save route").click()
    expect(page.get_by_text("Route story-chat is saved.")).to_be_visible()
    expect(page.get_by_text("Fallback 1")).to_be_visible()

    page.get_by_role("button", name="Disable").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("story-chat")
    dialog.get_by_role("button", name="Disable").click()
    expect(page.get_by_text("Route story-chat is disabled.")).to_be_visible()

    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete route").click()
    expect(page.get_by_text("Route story-chat is deleted.")).to_be_visible()


def test_the_list_fills_in_what_routes_did_today(open_as: Open, site: str) -> None:
    page = open_as("viewer", f"{site}/routes/")

    expect(page.locator("[id^=route-][id$=-requests]").first).to_have_text(re.compile(r"\d"))
    expect(page.get_by_role("link", name="New route")).to_have_count(0)

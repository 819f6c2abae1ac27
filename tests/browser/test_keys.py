"""A key from the first look at its secret to its end."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
SECRET = re.compile(r"^sk-ia-[\w-]{43}$")


def test_a_key_is_shown_once_rotated_and_revoked(open_as: Open, site: str) -> None:
    page = open_as("key_manager", f"{site}/keys/new/")
    page.get_by_label("Name").fill("story-key")
    page.get_by_role("button", name="Make key").click()
    expect(page.locator("#secret")).to_have_text(SECRET)
    first = page.locator("#secret").inner_text()
    expect(page.locator("#secret-curl")).to_contain_text(first)

    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_text("Limits and budgets")).to_be_visible()
    assert first not in page.content()

    page.get_by_role("link", name="Rotate").click()
    page.get_by_label("The old key keeps working for").select_option(label="1 hour")
    page.get_by_role("button", name="Rotate key").click()
    expect(page.locator("#secret")).to_have_text(SECRET)
    assert page.locator("#secret").inner_text() != first

    page.get_by_role("link", name="I have copied it").click()
    page.get_by_role("link", name="Revoke").click()
    expect(page.get_by_text("is refused with 401")).to_be_visible()
    page.get_by_role("button", name="Revoke key").click()
    expect(page.get_by_text("Key story-key is revoked.")).to_be_visible()


def test_the_key_page_fills_in_use_and_spend(open_as: Open, site: str) -> None:
    page = open_as("viewer", f"{site}/keys/1/")

    expect(page.locator(".bars rect").first).to_be_attached()
    expect(page.get_by_role("link", name="Revoke")).to_have_count(0)

"""Finding a request and reading why it went as it did."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def test_a_filter_goes_into_the_address_and_a_row_explains_itself(open_as: Open, site: str) -> None:
    page = open_as("viewer", f"{site}/requests/")

    page.get_by_label("Status").select_option(label="OK")
    expect(page).to_have_url(re.compile(r"status=ok"))
    page.reload()
    expect(page.get_by_label("Status")).to_have_value("ok")
    expect(page.locator("tbody .badge").first).to_have_text("OK")

    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="Where it went and why")).to_be_visible()
    expect(page.get_by_text("Answered in full")).to_be_visible()


def test_a_search_for_nothing_known_says_so(open_as: Open, site: str) -> None:
    page = open_as("viewer", f"{site}/requests/?q=unknown-request")

    expect(page.get_by_text("No request fits")).to_be_visible()

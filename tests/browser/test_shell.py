"""The frame around every page: keyboard, palette, theme, dialogs, live state, roles."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

# Of one core, a second: an endless shadow animation alone cost 130 (see FRONTEND's lesson).
MOST_MAIN_THREAD_MS = 60


def live(page: Page) -> None:
    expect(page.locator("#live")).to_have_attribute("data-state", "live")


def test_the_palette_goes_anywhere_by_keyboard_alone(open_as: Open, site: str) -> None:
    page = open_as("operator", f"{site}/fleet/1/")

    page.keyboard.press("Control+k")
    page.keyboard.type("gpu-bj")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")

    expect(page).to_have_url(f"{site}/fleet/2/")
    expect(page.get_by_role("heading", level=1)).to_have_text("gpu-bj-01")


def test_enter_in_the_palette_presses_nothing_else(open_as: Open, site: str) -> None:
    page = open_as("operator", f"{site}/fleet/1/")
    page.get_by_role("link", name=re.compile("^Unload")).first.focus()

    page.keyboard.press("Control+k")
    page.keyboard.type("nothing has this name")
    expect(page.get_by_text("Nothing has that name.")).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")

    expect(page.locator("#dialog")).to_be_hidden()
    expect(page.locator("#palette")).to_be_hidden()
    expect(page).to_have_url(f"{site}/fleet/1/")


@pytest.mark.parametrize(
    ("key", "path"), [("f", "/fleet/"), ("m", "/models/"), ("r", "/routes/"), ("q", "/requests/")]
)
def test_g_and_a_letter_go_to_a_page(open_as: Open, site: str, key: str, path: str) -> None:
    page = open_as("viewer", site)

    page.keyboard.press("g")
    page.keyboard.press(key)

    expect(page).to_have_url(site + path)


def test_slash_filters_rows_and_question_mark_lists_the_keys(open_as: Open, site: str) -> None:
    page = open_as("viewer", site)

    page.keyboard.press("/")
    page.keyboard.type("smollm2")
    expect(page.locator("#fleet tbody[data-filter-text]:visible")).to_have_count(1)
    expect(page.locator("#fleet tbody.group:visible")).to_have_count(1)
    page.keyboard.press("Tab")
    page.locator("body").press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_hidden()


def test_chips_show_the_rows_of_a_state(open_as: Open, site: str) -> None:
    page = open_as("viewer", site)

    page.get_by_role("button", name=re.compile("^Failed")).click()

    expect(page.locator("#fleet tbody[data-filter-text]:visible")).to_have_count(1)
    page.get_by_role("button", name=re.compile("^All")).click()
    expect(page.locator("#fleet tbody[data-filter-text]:visible")).to_have_count(7)


def test_the_theme_is_kept_and_needs_no_script_on_the_next_page(open_as: Open, site: str) -> None:
    page = open_as("viewer", site, color_scheme="light")

    page.get_by_role("button", name="Change the theme").click()
    page.goto(f"{site}/models/")

    assert page.request.get(f"{site}/models/").text().count('data-theme="dark"') == 1
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_charts_show_values_under_the_cursor_and_as_a_table(open_as: Open, site: str) -> None:
    page = open_as("viewer", site)
    chart = page.get_by_role("region", name="Latency")
    expect(chart.locator("canvas")).to_be_visible()

    chart.locator(".u-over").hover()
    expect(chart.locator(".chart-tip")).to_contain_text(re.compile(r"p99\d"))
    expect(page.get_by_role("region", name="Memory").locator("b").first).to_contain_text("GiB")
    chart.locator("summary").click()

    expect(chart.get_by_role("columnheader")).to_have_text(["Time", "p99", "p95", "p50"])
    expect(chart.get_by_role("row")).not_to_have_count(0)


def test_pause_closes_the_socket_and_says_so(open_as: Open, site: str) -> None:
    page = open_as("viewer", site)
    live(page)

    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_text("Paused")
    page.keyboard.press("p")

    live(page)


def test_a_lost_socket_is_said_and_comes_back(open_as: Open, site: str) -> None:
    page = open_as("viewer", site)
    live(page)

    with page.expect_request(re.compile("/live/history"), timeout=20_000):
        page.route_web_socket(re.compile("/ws/live/"), lambda socket: socket.close())
        page.keyboard.press("p")
        page.keyboard.press("p")
        expect(page.locator("#live")).to_have_text("Reconnecting", timeout=10_000)


def test_unload_asks_names_the_routes_and_can_be_called_off(open_as: Open, site: str) -> None:
    page = open_as("operator", f"{site}/fleet/1/")
    row = page.locator("tbody", has=page.get_by_role("link", name="smollm2", exact=True))

    row.get_by_role("link", name=re.compile("^Unload")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Unload smollm2 on triton-local?")
    expect(dialog).to_contain_text("smollm2 on llama-cpp")
    dialog.get_by_role("link", name="Cancel").click()

    expect(dialog).to_be_hidden()
    expect(row.locator(".badge")).to_have_text("Ready")


def test_a_load_turns_its_row_busy_at_once_and_keeps_the_place(open_as: Open, site: str) -> None:
    page = open_as("operator", f"{site}/fleet/2/")
    row = page.locator("tbody", has=page.get_by_role("link", name="yolo-v11-x", exact=True))

    row.get_by_role("button", name=re.compile("^Load")).press("Enter")

    expect(row.get_by_text("Loading")).to_be_visible()
    expect(row.get_by_role("progressbar")).to_be_visible()
    expect(page.locator(".toast")).to_contain_text("is on its way")
    expect(page.locator("#placement-6-main")).to_be_focused()


def test_without_script_a_load_still_works(open_as: Open, site: str) -> None:
    page = open_as("operator", f"{site}/fleet/2/", java_script_enabled=False)
    row = page.locator("tbody", has=page.get_by_role("link", name="asr-small", exact=True))

    row.get_by_role("button", name=re.compile("^Try again")).click()

    expect(page).to_have_url(f"{site}/fleet/2/")
    expect(page.locator(".toast")).to_contain_text("is on its way")


def test_a_viewer_gets_no_buttons(open_as: Open, site: str) -> None:
    page = open_as("viewer", f"{site}/fleet/2/")

    expect(page.locator("#repository")).to_contain_text("yolo-v11-x")
    expect(page.locator("#repository button, #repository .button")).to_have_count(0)
    expect(page.get_by_role("link", name="Admin", exact=True)).to_have_count(0)


def test_who_was_signed_out_is_asked_to_sign_in_and_comes_back(open_as: Open, site: str) -> None:
    page = open_as("operator", f"{site}/fleet/2/")
    page.context.clear_cookies(name="sessionid")

    page.locator("tbody .button", has_text="Reload").first.click()

    expect(page).to_have_url(re.compile(r"/account/login/\?next="))


def test_the_menu_is_a_drawer_on_a_phone(open_as: Open, site: str) -> None:
    page = open_as("viewer", site, viewport={"width": 390, "height": 800})

    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Models", exact=True).click()

    expect(page).to_have_url(f"{site}/models/")


def test_an_open_overview_costs_little(open_as: Open, site: str) -> None:
    page = open_as("viewer", site)
    live(page)
    page.wait_for_timeout(2000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy_ms() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))

    before = busy_ms()
    page.wait_for_timeout(5000)

    assert (busy_ms() - before) / 5 < MOST_MAIN_THREAD_MS

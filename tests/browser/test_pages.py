"""Every page in light and dark, wide and narrow: no error, no finding of axe, a picture."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Response

from tests.browser.conftest import Open

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

PAGES = {
    "overview": "/",
    "fleet": "/fleet/",
    "server": "/fleet/2/",
    "server-gpus": "/fleet/2/?tab=gpus",
    "server-operations": "/fleet/2/?tab=operations",
    "server-history": "/fleet/2/?tab=history",
    "server-form": "/fleet/2/edit/",
    "unload": "/fleet/placements/1/unload/",
    "models": "/models/",
    "model": "/models/1/",
    "routes": "/routes/",
    "route": "/routes/1/",
    "requests": "/requests/",
    "keys": "/keys/",
    "key": "/keys/1/",
    "playground": "/playground/",
}
EMPTY = ("overview", "fleet", "models", "routes", "requests", "keys", "playground")
WIDTHS = (1440, 390)
MOST_BYTES = 250_000


def serious(page: Page) -> list[str]:
    """What axe finds that keeps somebody from using the page."""
    found = Axe().run(page).response["violations"]
    return [
        f"{item['id']} ({item['impact']}): {node['target']} {node['html'][:120]}"
        for item in found
        if item["impact"] in {"serious", "critical"}
        for node in item["nodes"]
    ]


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_in_every_look(
    open_as: Open, site: str, screenshots: Path, name: str
) -> None:
    for theme in ("light", "dark"):
        # Axe is put into the page as a script, which the policy forbids.
        page = open_as("lin.wei", site + PAGES[name], color_scheme=theme, bypass_csp=True)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(600)  # charts follow the size, the socket brings its first frame
            page.screenshot(path=screenshots / f"{name}-{theme}-{width}.png", full_page=True)
            assert overflow(page) <= 0, f"{name} in {theme} at {width}"
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        assert serious(page) == [], f"{name} in {theme}"


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_page_says_what_comes_first(
    open_as: Open, empty_site: str, screenshots: Path, name: str
) -> None:
    page = open_as("lin.wei", empty_site + PAGES[name], color_scheme="light")

    page.screenshot(path=screenshots / f"{name}-empty.png", full_page=True)

    assert page.locator(".empty h2, main h2").first.is_visible()


def test_a_page_loads_cold_within_its_budget(open_as: Open, site: str) -> None:
    page = open_as("lin.wei", f"{site}/account/login/")
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[float] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))

    # Until the load event: what a live page fetches again later is not a part of its start.
    page.goto(site, wait_until="load")

    assert 50_000 < sum(sizes) < MOST_BYTES


def test_static_files_carry_their_hash(open_as: Open, site: str) -> None:
    answers: list[Response] = []
    page = open_as("lin.wei", f"{site}/fleet/")
    page.on("response", lambda answer: answers.append(answer))

    page.reload()

    static = [answer for answer in answers if "/static/dist/" in answer.url]
    assert static
    assert all(len(answer.url.rsplit("/", 1)[1].split(".")) == 3 for answer in static)

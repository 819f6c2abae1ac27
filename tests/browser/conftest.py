"""A real browser on a real console; tests are strict about errors on the page.

Playwright keeps an event loop in its thread while it runs, which Django and pytest-asyncio take
for an async caller. So it lives as long as this package's tests run, and not for the session.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, StorageState, sync_playwright

from tests.browser.site import PASSWORD, collect_static, site_in

_ROOT = Path(__file__).resolve().parents[2]
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
# htmx says so when an answer is an error; the answer itself is what a test looks at.
EXPECTED = ("Response Status Error Code", "Failed to load resource: the server responded with")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a browser; without one the stories are skipped before anything is started."""
    chosen = os.environ.get("INFERADMIN_CHROMIUM", "")
    path = next(filter(None, map(shutil.which, [chosen] if chosen else _NAMES)), None)
    if path is None:
        pytest.skip("no chromium on this machine: browser stories are not run")
    return path


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def built(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `var` folder with the static files in it."""
    var = tmp_path_factory.mktemp("sites")
    collect_static(var)
    return var


@pytest.fixture(scope="session")
def site(built: Path) -> Iterator[str]:
    """Address of a console with a fleet in every state."""
    with site_in(built, "browser_full", is_empty=False) as url:
        yield url


@pytest.fixture(scope="session")
def empty_site(built: Path) -> Iterator[str]:
    """Address of a console in which nothing has been made yet."""
    with site_in(built, "browser_empty", is_empty=True) as url:
        yield url


Open = Callable[..., Page]


@pytest.fixture(scope="package")
def sessions(browser: Browser) -> Callable[[str, str, str], StorageState]:
    """Cookies of somebody at a site: signed in once, by the form, and kept for later pages."""
    known: dict[tuple[str, str], StorageState] = {}

    def session(origin: str, username: str, password: str) -> StorageState:
        if (origin, username) not in known:
            with browser.new_context() as context:
                _sign_in(context.new_page(), origin, username, password)
                known[origin, username] = context.storage_state()
        return known[origin, username]

    return session


@pytest.fixture
def open_as(browser: Browser, sessions: Callable[[str, str, str], StorageState]) -> Iterator[Open]:
    """`open_as("operator", url)`: a page of a fresh browser session, signed in and at `url`.

    Further arguments go to the browser context. When the test ends, an error in any console or an
    exception on any page fails it.
    """
    problems: list[str] = []
    with ExitStack() as contexts:

        def open_page(username: str, url: str, *, password: str = PASSWORD, **options: Any) -> Page:
            state = sessions("/".join(url.split("/")[:3]), username, password)
            context = browser.new_context(storage_state=state, **options)
            page = contexts.enter_context(context).new_page()
            page.on("pageerror", lambda error: problems.append(f"exception: {error}"))
            page.on("console", lambda message: _note(message.type, message.text, problems))
            page.goto(url)
            return page

        yield open_page
    assert problems == []


def _sign_in(page: Page, origin: str, username: str, password: str) -> None:
    page.goto(f"{origin}/account/login/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{origin}/")


def _note(kind: str, text: str, problems: list[str]) -> None:
    if kind == "error" and not text.startswith(EXPECTED):
        problems.append(text)


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Folder of pictures for people to look at; not kept in the repository."""
    folder = _ROOT / "tests" / "screenshots"
    folder.mkdir(exist_ok=True)
    return folder

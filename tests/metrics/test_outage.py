"""Pages while the database is away."""

import pytest
from django.db import OperationalError
from django.test import Client

from apps.core.models import User
from apps.metrics import views
from apps.metrics.selectors import history


@pytest.fixture
def broken_page(client: Client, viewer: User, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A signed-in browser whose next page runs into a database that has gone."""

    def away(*args: object) -> None:
        raise OperationalError("connection to server was lost")

    client.force_login(viewer)
    client.raise_request_exception = False
    monkeypatch.setattr(history, "history", away)
    return client


URL = "/live/history?topic=overview"


def test_a_page_says_that_the_database_is_away_and_comes_back_by_itself(
    broken_page: Client,
) -> None:
    answer = broken_page.get(URL)

    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert "PostgreSQL does not answer" in answer.content.decode()
    assert 'http-equiv="refresh"' in answer.content.decode()


def test_a_part_of_a_page_gets_one_line(broken_page: Client) -> None:
    answer = broken_page.get(URL, headers={"HX-Request": "true"})

    assert answer.status_code == 503
    assert answer.content.decode().startswith('<p class="notice bad"')


def test_a_program_gets_json(broken_page: Client) -> None:
    answer = broken_page.get(URL, headers={"Accept": "application/json"})

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "database_away"


def test_the_banner_appears_on_pages_that_are_open(
    broken_page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: object) -> None:
        raise OperationalError("connection to server was lost")

    monkeypatch.setattr(views, "system_state", away)

    answer = broken_page.get("/live/system", headers={"HX-Request": "true"})

    assert answer.status_code == 200
    assert answer.content.decode().count("data-problem=") == 1
    assert 'data-problem="postgres_away"' in answer.content.decode()


def test_another_bug_stays_a_500(broken_page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(history, "history", broken)

    assert broken_page.get(URL).status_code == 500

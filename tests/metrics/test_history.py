"""`/live/history`: the socket's snapshot for pages without a socket."""

from collections.abc import Callable

import pytest
from django.test import Client

from apps.core.models import User
from tests.factories import ServerFactory

ConsoleAs = Callable[[User], Client]


def test_history_gives_the_shape_of_the_snapshot(console_as: ConsoleAs, viewer: User) -> None:
    answer = console_as(viewer).get("/live/history?topic=overview&minutes=15")

    body = answer.json()
    assert answer.status_code == 200
    assert body["topic"] == "overview"
    assert body["series"] == {}
    assert 440 <= len(body["t"]) <= 450


@pytest.mark.parametrize(
    "query", ["", "topic=x", "topic=overview&minutes=0", "topic=overview&minutes=x"]
)
def test_history_names_the_wrong_parameter(console_as: ConsoleAs, viewer: User, query: str) -> None:
    answer = console_as(viewer).get(f"/live/history?{query}")

    assert answer.status_code == 400
    assert answer.json()["error"]["fields"].keys() <= {"topic", "minutes"}


def test_history_of_an_unknown_server_is_404(console_as: ConsoleAs, viewer: User) -> None:
    answer = console_as(viewer).get("/live/history?topic=server:999")

    assert answer.status_code == 404


def test_history_is_for_people_who_signed_in(db: None) -> None:
    server = ServerFactory.create()

    assert Client().get(f"/live/history?topic=server:{server.pk}").status_code == 302

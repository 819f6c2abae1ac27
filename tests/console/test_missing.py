"""An address that leads nowhere."""

from collections.abc import Callable

import pytest
from django.test import Client

from apps.core.models import User


def test_a_wrong_address_gets_a_page_with_a_way_back(
    viewer: User, console_as: Callable[[User], Client]
) -> None:
    response = console_as(viewer).get("/nowhere/")

    assert response.status_code == 404
    assert "There is no such page" in response.content.decode()
    assert 'href="/"' in response.content.decode()


@pytest.mark.django_db
def test_a_stranger_is_asked_to_sign_in_first() -> None:
    response = Client().get("/nowhere/?x=1")

    assert response.status_code == 302
    assert response["Location"] == "/account/login/?next=/nowhere/%3Fx%3D1"

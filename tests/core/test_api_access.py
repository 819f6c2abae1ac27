"""The REST API is closed by default."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from apps.core.actors import SYSTEM
from apps.core.models import User
from apps.core.services import token_issue


@pytest.mark.django_db
def test_the_schema_asks_for_a_sign_in() -> None:
    response = APIClient().get("/api/schema")

    assert response.status_code == 401
    assert "Bearer" in response["WWW-Authenticate"]


def test_a_management_token_opens_the_api(viewer: User) -> None:
    _token, secret = token_issue(actor=SYSTEM, user=viewer, name="tests")

    response = APIClient().get("/api/schema", headers={"Authorization": f"Bearer {secret}"})

    assert response.status_code == 200


def test_a_revoked_token_is_refused(viewer: User) -> None:
    token, secret = token_issue(actor=SYSTEM, user=viewer, name="tests")
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])

    response = APIClient().get("/api/schema", headers={"Authorization": f"Bearer {secret}"})

    assert response.status_code == 401
    assert secret not in response.content.decode()


def test_pages_send_a_stranger_to_the_sign_in(db: None) -> None:
    response = Client().get("/")

    assert response.status_code == 302
    assert response["Location"].startswith("/account/login/")


def test_the_probe_needs_no_sign_in(db: None, console_as: Callable[[User], Client]) -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}

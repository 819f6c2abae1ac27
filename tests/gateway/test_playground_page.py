"""The playground's page and key; its script is tested in a browser."""

from collections.abc import Callable

import pytest
from django.test import Client

from apps.core.models import User
from apps.core.secrets import digest_of
from apps.keys.models import ApiKey
from tests.factories import RouteFactory, ServedModelFactory, TargetFactory

As = Callable[[User], Client]


@pytest.fixture
def site(operator: User, console_as: As) -> Client:
    return console_as(operator)


def test_it_offers_the_enabled_routes_with_what_they_are_for(site: Client) -> None:
    ServedModelFactory.create(name="minilm", kind="embedding")
    TargetFactory.create(route__name="embed", upstream_model="minilm")
    TargetFactory.create(route__name="chat", upstream_model="gpt")
    RouteFactory.create(name="off", is_enabled=False)

    routes = site.get("/playground/").context["routes"]

    assert [(route.name, kind) for route, kind in routes] == [
        ("chat", "llm"),
        ("embed", "embedding"),
    ]


def test_without_a_route_it_says_how_to_make_one(site: Client) -> None:
    body = site.get("/playground/").content.decode()

    assert "/routes/new/" in body


def test_the_key_is_good_for_an_hour_and_never_cached(site: Client, empty_redis: None) -> None:
    response = site.post("/playground/key/")

    key = ApiKey.objects.get(digest=digest_of(response.json()["key"]))
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).total_seconds() == pytest.approx(3600, abs=5)
    assert "no-store" in response["Cache-Control"]


def test_the_key_asks_for_a_csrf_token(operator: User) -> None:
    site = Client(enforce_csrf_checks=True)
    site.force_login(operator)

    assert site.post("/playground/key/").status_code == 403
    assert not ApiKey.objects.exists()


def test_the_viewer_may_not_use_it(viewer: User, console_as: As) -> None:
    site = console_as(viewer)

    assert site.get("/playground/").status_code == 403
    assert site.post("/playground/key/").status_code == 403

"""Keys and teams in the console."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.core.models import User
from apps.core.secrets import digest_of
from apps.keys.models import ApiKey
from tests.factories import ApiKeyFactory, LimitFactory, RouteFactory, TeamFactory

As = Callable[[User], Client]
QUERIES = 7
SECRET = re.compile(r"sk-ia-[A-Za-z0-9_-]{30,}")


@pytest.fixture
def site(key_manager: User, console_as: As) -> Client:
    return console_as(key_manager)


@pytest.mark.parametrize("count", [3, 30])
def test_the_list_asks_the_same_few_questions_for_any_number_of_rows(
    site: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        key = ApiKeyFactory.create(allows_all_routes=False)
        key.routes.add(RouteFactory.create())
        LimitFactory.create(key=key)

    with django_assert_num_queries(QUERIES):
        response = site.get("/keys/")

    assert len(response.context["rows"]) == count


def test_an_empty_list_offers_the_first_key(site: Client) -> None:
    body = site.get("/keys/").content.decode()

    assert "No keys yet" in body
    assert "/keys/new/" in body


@pytest.mark.parametrize("state", ["active", "expired", "revoked", "suspended"])
def test_the_state_filter_agrees_with_the_key(site: Client, state: str) -> None:
    past = timezone.now() - timedelta(hours=1)
    ApiKeyFactory.create()
    ApiKeyFactory.create(expires_at=past)
    ApiKeyFactory.create(revoked_at=past, expires_at=past)
    ApiKeyFactory.create(team__is_active=False)

    rows = site.get(f"/keys/?state={state}").context["rows"]

    assert [shown for _key, shown in rows] == [state]


def test_search_finds_by_name_and_by_a_whole_secret(site: Client) -> None:
    key = ApiKeyFactory.create(name="search-backend", secret="sk-ia-abcdefghijkl")
    ApiKeyFactory.create()

    for text in ("backend", "sk-ia-abcdefghijkl"):
        rows = site.get("/keys/", {"q": text}).context["rows"]
        assert [row for row, _state in rows] == [key]


def test_a_new_key_is_shown_once_and_never_cached(site: Client) -> None:
    team = TeamFactory.create()
    data = {"team": team.pk, "name": "ci", "allows_all_routes": "on"}

    response = site.post("/keys/new/", data)

    key = ApiKey.objects.get()
    secret = SECRET.search(response.content.decode())
    assert secret is not None
    assert digest_of(secret.group()) == key.digest
    assert "no-store" in response["Cache-Control"]
    assert "curl" in response.content.decode()
    assert not SECRET.search(site.get(f"/keys/{key.pk}/").content.decode())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "This field is required"),
        ({"allows_all_routes": ""}, "Choose at least one route"),
        ({"expires_at": "2020-01-01T00:00"}, "passed already"),
    ],
)
def test_a_mistake_is_named_at_its_field_and_no_key_is_made(
    site: Client, fields: dict[str, str], words: str
) -> None:
    data = {"team": TeamFactory.create().pk, "name": "ci", "allows_all_routes": "on"} | fields

    response = site.post("/keys/new/", data)

    assert response.status_code == 400
    assert words in response.content.decode()
    assert not ApiKey.objects.exists()


def test_a_name_that_the_team_uses_already_is_refused(site: Client) -> None:
    key = ApiKeyFactory.create(name="ci")

    response = site.post(
        "/keys/new/", {"team": key.team_id, "name": "ci", "allows_all_routes": "on"}
    )

    assert response.status_code == 400
    assert ApiKey.objects.count() == 1


def test_a_rotated_key_shows_the_new_secret_and_keeps_the_old_for_the_grace(
    site: Client,
) -> None:
    old = ApiKeyFactory.create()

    response = site.post(f"/keys/{old.pk}/rotate/", {"grace_seconds": "3600"})

    old.refresh_from_db()
    secret = SECRET.search(response.content.decode())
    assert secret is not None
    assert ApiKey.objects.get(digest=digest_of(secret.group())).rotated_from == old
    assert old.expires_at is not None
    assert "no-store" in response["Cache-Control"]


def test_revoke_asks_first_and_names_what_stops(site: Client) -> None:
    key = ApiKeyFactory.create(name="legacy-crm")

    asked = site.get(f"/keys/{key.pk}/revoke/").content.decode()
    key.refresh_from_db()
    assert "legacy-crm" in asked
    assert key.revoked_at is None

    site.post(f"/keys/{key.pk}/revoke/")
    key.refresh_from_db()
    assert key.revoked_at is not None


@pytest.mark.parametrize("path", ["new/", "{pk}/rotate/", "{pk}/revoke/"])
@pytest.mark.parametrize("person", ["viewer", "operator"])
def test_only_key_managers_change_keys(
    request: pytest.FixtureRequest, console_as: As, person: str, path: str
) -> None:
    site = console_as(request.getfixturevalue(person))
    key = ApiKeyFactory.create()

    for send in (site.get, site.post):
        response = send(f"/keys/{path.format(pk=key.pk)}")
        assert response.status_code == 403

    key.refresh_from_db()
    assert key.revoked_at is None
    assert ApiKey.objects.count() == 1


def test_the_viewer_reads_keys_without_the_buttons(viewer: User, console_as: As) -> None:
    key = ApiKeyFactory.create()

    body = console_as(viewer).get(f"/keys/{key.pk}/").content.decode()

    assert key.prefix in body
    assert key.digest not in body
    assert f"/keys/{key.pk}/revoke/" not in body


def test_the_export_holds_no_digest(site: Client) -> None:
    key = ApiKeyFactory.create()

    body = b"".join(site.get("/keys/export.csv").streaming_content).decode()  # type: ignore[attr-defined]

    assert key.name in body
    assert key.digest not in body


@pytest.mark.parametrize("count", [3, 30])
def test_the_list_of_teams_counts_keys_in_one_question(
    site: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        ApiKeyFactory.create()

    with django_assert_num_queries(4):
        response = site.get("/keys/teams/")

    assert len(response.context["page"]) == count


def test_a_team_shows_its_keys(site: Client) -> None:
    key = ApiKeyFactory.create(name="search-backend")

    body = site.get(f"/keys/teams/{key.team_id}/").content.decode()

    assert "search-backend" in body

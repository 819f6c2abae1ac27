"""Models in the console."""

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.core.models import User
from tests.factories import ModelVersionFactory, ServedModelFactory

As = Callable[[User], Client]
# Session, user; then count and rows of the list.
LIST_QUERIES = 4


@pytest.fixture
def site(viewer: User, console_as: As) -> Client:
    return console_as(viewer)


@pytest.mark.parametrize("count", [3, 30])
def test_the_list_asks_the_same_few_questions_for_any_number_of_models(
    site: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        ModelVersionFactory.create()

    with django_assert_num_queries(LIST_QUERIES):
        html = site.get("/models/").content.decode()

    assert html.count('-states" class="row"') == count


def test_the_list_is_narrowed_sorted_and_paged_by_its_address(site: Client) -> None:
    for number in range(60):
        ServedModelFactory.create(name=f"m{number:02}", kind="llm" if number else "other")

    first = site.get("/models/").content.decode()
    last = site.get("/models/?page=2&sort=-name").content.decode()
    other = site.get("/models/?kind=other").content.decode()

    assert "1–50 of 60" in first  # noqa: RUF001
    assert "m00" in last
    assert "m59" not in last
    assert "m00" in other
    assert "m01" not in other


def test_empty_and_not_found_say_so(site: Client) -> None:
    assert "No model yet" in site.get("/models/").content.decode()
    assert "No model fits" in site.get("/models/?q=x").content.decode()
    assert site.get("/models/99/").status_code == 404


def test_a_model_shows_its_versions_and_asks_the_fleet_for_the_rest(site: Client) -> None:
    version = ModelVersionFactory.create(model__name="smollm2", number=3, note="first try")

    html = site.get(f"/models/{version.model_id}/").content.decode()

    assert "v3" in html
    assert "first try" in html
    assert f"/fleet/parts/models/{version.model_id}/placements/" in html
    assert "Expose as route" not in html


def test_the_list_can_be_had_as_csv(site: Client) -> None:
    ModelVersionFactory.create(model__name="smollm2", number=3)

    text = b"".join(site.get("/models/export.csv")).decode()

    assert "smollm2,other,1,3," in text

"""REST: models."""

from collections.abc import Callable

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from apps.catalog.models import ServedModel
from apps.core.models import User
from tests.factories import ModelVersionFactory, ServedModelFactory

As = Callable[[User], APIClient]


def test_a_model_is_made_read_and_changed(operator: User, api_as: As) -> None:
    client = api_as(operator)

    made = client.post("/api/v1/models", {"name": "smollm2", "kind": "llm"}, format="json")
    path = f"/api/v1/models/{made.json()['id']}"
    changed = client.patch(path, {"load_deadline_seconds": 60}, format="json")

    assert (made.status_code, made.json()["load_deadline_seconds"]) == (201, 300)
    assert (changed.status_code, changed.json()["load_deadline_seconds"]) == (200, 60)
    assert client.get("/api/v1/models?name=smollm2").json()["count"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ".."}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "a", "kind": "toaster"}, "kind"),
        ({"name": "a", "load_deadline_seconds": 0}, "load_deadline_seconds"),
        ({"name": "a", "wat": 1}, "wat"),
    ],
)
def test_what_is_wrong_is_named(
    operator: User, api_as: As, body: dict[str, object], field: str
) -> None:
    response = api_as(operator).post("/api/v1/models", body, format="json")

    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == [field]
    assert not ServedModel.objects.exists()


def test_a_name_that_is_taken_is_a_conflict(operator: User, api_as: As) -> None:
    ServedModelFactory.create(name="smollm2")

    response = api_as(operator).post("/api/v1/models", {"name": "smollm2"}, format="json")

    assert response.status_code == 409


@pytest.mark.parametrize("count", [3, 30])
def test_the_list_asks_the_same_few_questions_for_any_number_of_rows(
    viewer: User, api_as: As, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        ModelVersionFactory.create()

    with django_assert_num_queries(3):
        response = api_as(viewer).get("/api/v1/models")

    assert len(response.json()["results"]) == count


def test_the_viewer_may_not_write(viewer: User, api_as: As) -> None:
    model = ServedModelFactory.create()
    client = api_as(viewer)

    assert client.post("/api/v1/models", {"name": "a"}, format="json").status_code == 403
    assert client.patch(f"/api/v1/models/{model.pk}", {}, format="json").status_code == 403

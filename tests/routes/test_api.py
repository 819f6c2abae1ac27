"""REST: routes with their targets."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from apps.core.models import User
from apps.fleet.models import Server
from apps.routes.models import Route
from tests.factories import RouteFactory, ServerFactory, TargetFactory

As = Callable[[User], APIClient]


@pytest.fixture
def engine(db: None) -> Server:
    return ServerFactory.create(kind=Server.Kind.VLLM)


@pytest.fixture
def client(operator: User, api_as: As) -> APIClient:
    return api_as(operator)


def _route(engine: Server, **target: Any) -> dict[str, Any]:
    first = {"server_id": engine.pk, "upstream_model": "chat", "protocol": "openai"}
    return {"name": "chat", "targets": [first | target]}


def test_a_route_is_made_read_changed_and_deleted(client: APIClient, engine: Server) -> None:
    made = client.post("/api/v1/routes", _route(engine, tier=1), format="json")
    path = f"/api/v1/routes/{made.json()['id']}"
    changed = client.patch(path, {"data_class": "on_prem"}, format="json")
    gone = client.delete(path)

    assert made.status_code == 201
    target = made.json()["targets"][0]
    assert (target["server_name"], target["tier"], target["weight"]) == (engine.name, 1, 100)
    assert (changed.status_code, changed.json()["data_class"]) == (200, "on_prem")
    assert len(changed.json()["targets"]) == 1
    assert (gone.status_code, client.get(path).status_code) == (204, 404)


def test_how_requests_wait_is_set(client: APIClient, engine: Server) -> None:
    policy = {"max_attempts": 2, "wait_seconds": 0, "max_waiting": 7}

    made = client.post(
        "/api/v1/routes", {**_route(engine, max_in_flight=4), **policy}, format="json"
    )
    wrong = client.patch(f"/api/v1/routes/{made.json()['id']}", {"max_attempts": 11}, format="json")

    assert made.status_code == 201
    assert {name: made.json()[name] for name in policy} == policy
    assert made.json()["targets"][0]["max_in_flight"] == 4
    assert (wrong.status_code, list(wrong.json()["error"]["fields"])) == (400, ["max_attempts"])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"wat": 1}, "targets.0.wat"),
        ({"weight": "many"}, "targets.0.weight"),
        ({"server_id": 99999}, "targets.0.server_id"),
        ({"protocol": "triton_generate"}, "targets.0.protocol"),
        ({"weight": 0}, "targets"),
    ],
)
def test_what_is_wrong_with_a_target_is_named(
    client: APIClient, engine: Server, change: dict[str, Any], field: str
) -> None:
    response = client.post("/api/v1/routes", _route(engine, **change), format="json")

    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == [field]
    assert not Route.objects.exists()


def test_unknown_fields_and_parameters_are_named(client: APIClient, engine: Server) -> None:
    body = client.post("/api/v1/routes", {**_route(engine), "wat": 1}, format="json").json()
    query = client.get("/api/v1/routes?wat=1").json()

    assert list(body["error"]["fields"]) == list(query["error"]["fields"]) == ["wat"]


def test_a_name_that_is_taken_is_a_conflict(client: APIClient, engine: Server) -> None:
    RouteFactory.create(name="chat")

    assert client.post("/api/v1/routes", _route(engine), format="json").status_code == 409


def test_routes_are_narrowed_by_server(client: APIClient) -> None:
    wanted = TargetFactory.create()
    TargetFactory.create()

    body = client.get(f"/api/v1/routes?server={wanted.server_id}").json()

    assert [route["name"] for route in body["results"]] == [wanted.route.name]


@pytest.mark.parametrize("count", [3, 30])
def test_the_list_asks_the_same_few_questions_for_any_number_of_rows(
    client: APIClient, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        TargetFactory.create()

    with django_assert_num_queries(3):
        response = client.get("/api/v1/routes")

    assert len(response.json()["results"]) == count


def test_the_viewer_may_not_write(viewer: User, api_as: As, engine: Server) -> None:
    path = f"/api/v1/routes/{RouteFactory.create().pk}"
    client = api_as(viewer)

    answers = [
        client.post("/api/v1/routes", _route(engine), format="json"),
        client.patch(path, {"is_enabled": False}, format="json"),
        client.delete(path),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]

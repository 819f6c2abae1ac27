"""REST: servers, placements and operations."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from apps.core.models import User
from apps.fleet.models import Operation, Placement, Server
from tests.factories import OperationFactory, PlacementFactory, ServerFactory

As = Callable[[User], APIClient]
SERVER = {"name": "gpu-1", "kind": "triton", "url": "http://10.0.0.1:8000"}


@pytest.fixture
def as_admin(admin: User, api_as: As) -> APIClient:
    return api_as(admin)


@pytest.fixture
def as_operator(operator: User, api_as: As) -> APIClient:
    return api_as(operator)


def test_a_server_is_made_read_changed_and_deleted(as_admin: APIClient) -> None:
    made = as_admin.post("/api/v1/servers", {**SERVER, "api_key": "sk-1"}, format="json")
    path = f"/api/v1/servers/{made.json()['id']}"
    changed = as_admin.patch(path, {"note": "rack 7"}, format="json")
    read = as_admin.get(path)
    gone = as_admin.delete(path)

    assert (made.status_code, made.json()["has_api_key"]) == (201, True)
    assert "sk-1" not in made.content.decode() + read.content.decode()
    assert (changed.status_code, read.json()["note"]) == (200, "rack 7")
    assert (gone.status_code, as_admin.get(path).status_code) == (204, 404)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"wat": 1}, "wat"),
        ({"kind": "quantum"}, "kind"),
        ({"url": "http://169.254.169.254"}, "url"),
        ({"name": ".."}, "name"),
        ({"name": None}, "name"),
        ({"api_key": "a b"}, "api_key"),
    ],
)
def test_what_is_wrong_is_named(as_admin: APIClient, change: dict[str, Any], field: str) -> None:
    response = as_admin.post("/api/v1/servers", {**SERVER, **change}, format="json")

    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == [field]
    assert not Server.objects.exists()


def test_a_name_that_is_taken_is_a_conflict(as_admin: APIClient) -> None:
    ServerFactory.create(name="gpu-1")

    assert as_admin.post("/api/v1/servers", SERVER, format="json").status_code == 409


def test_what_is_wrong_with_a_server_is_told_in_words(as_admin: APIClient) -> None:
    server = ServerFactory.create(state="unreachable", state_reason={"code": "connect_failed"})

    body = as_admin.get(f"/api/v1/servers/{server.pk}").json()

    assert body["state_text"] == "Nothing answers at this address. Is the server running?"


@pytest.mark.parametrize(
    ("action", "step"), [("load", "load"), ("unload", "unload"), ("reload", "unload")]
)
def test_an_action_answers_with_the_operation(
    as_operator: APIClient, action: str, step: str
) -> None:
    placement = PlacementFactory.create()

    response = as_operator.post(f"/api/v1/placements/{placement.pk}/{action}")

    body = response.json()
    assert response.status_code == 202
    assert (body["kind"], body["step"], body["state"], body["is_open"]) == (
        action, step, "pending", True,
    )  # fmt: skip
    assert as_operator.get(f"/api/v1/operations/{body['id']}").json()["id"] == body["id"]
    newest = as_operator.get(f"/api/v1/placements/{placement.pk}").json()["latest_operation"]
    assert newest["id"] == body["id"]


def test_an_action_has_no_options(as_operator: APIClient) -> None:
    placement = PlacementFactory.create()

    response = as_operator.post(
        f"/api/v1/placements/{placement.pk}/unload", {"version": 2}, format="json"
    )

    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == ["version"]
    assert not Operation.objects.exists()


def test_a_second_action_is_a_conflict(as_operator: APIClient) -> None:
    placement = OperationFactory.create().placement

    response = as_operator.post(f"/api/v1/placements/{placement.pk}/load")

    assert (response.status_code, response.json()["error"]["code"]) == (409, "conflict")


def test_an_engine_that_loads_nothing_says_so(as_operator: APIClient) -> None:
    placement = PlacementFactory.create(server=ServerFactory.create(kind="llama_cpp"))

    response = as_operator.post(f"/api/v1/placements/{placement.pk}/load")

    assert response.status_code == 400
    assert "llama.cpp" in response.json()["error"]["message"]


def test_a_failed_operation_says_what_to_do(as_operator: APIClient) -> None:
    operation = OperationFactory.create(
        state="failed", verdict={"code": "poll_failed"}, finished_at=timezone.now()
    )

    body = as_operator.get(f"/api/v1/operations/{operation.pk}").json()

    assert "config.pbtxt" in body["verdict_text"]


def test_operations_are_narrowed(as_operator: APIClient) -> None:
    wanted = OperationFactory.create()
    OperationFactory.create(state="done", finished_at=timezone.now())

    def found(query: str) -> list[str]:
        body = as_operator.get(f"/api/v1/operations?{query}").json()
        return [item["id"] for item in body["results"]]

    placement = wanted.placement
    for query in (
        f"server={placement.server_id}",
        f"model={placement.model_id}",
        f"placement={placement.pk}",
        "state=pending&state=observing",
    ):
        assert found(query) == [str(wanted.pk)], query
    assert len(found("")) == 2


@pytest.mark.parametrize("path", ["servers", "placements", "operations"])
def test_an_unknown_parameter_is_named(as_operator: APIClient, path: str) -> None:
    response = as_operator.get(f"/api/v1/{path}?wat=1")

    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == ["wat"]


@pytest.mark.parametrize(
    "path", ["servers/999", "placements/999", "operations/00000000-0000-0000-0000-000000000000"]
)
def test_what_is_not_there_is_not_found(as_operator: APIClient, path: str) -> None:
    assert as_operator.get(f"/api/v1/{path}").status_code == 404


@pytest.mark.parametrize("count", [3, 30])
@pytest.mark.parametrize(
    ("path", "queries"), [("servers", 2), ("placements", 3), ("operations", 2)]
)
def test_lists_ask_the_same_few_questions_for_any_number_of_rows(
    as_operator: APIClient,
    django_assert_num_queries: DjangoAssertNumQueries,
    path: str,
    queries: int,
    count: int,
) -> None:
    for _number in range(count):
        OperationFactory.create()

    with django_assert_num_queries(queries):
        response = as_operator.get(f"/api/v1/{path}")

    assert len(response.json()["results"]) == count


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("post", "servers"),
        ("patch", "servers/{server}"),
        ("delete", "servers/{server}"),
        ("post", "placements/{placement}/load"),
        ("post", "placements/{placement}/unload"),
        ("post", "placements/{placement}/reload"),
    ],
)
def test_the_viewer_may_not_write(viewer: User, api_as: As, method: str, path: str) -> None:
    placement = PlacementFactory.create()
    url = path.format(server=placement.server_id, placement=placement.pk)

    response = getattr(api_as(viewer), method)(f"/api/v1/{url}", {}, format="json")

    assert response.status_code == 403
    assert Placement.objects.get().generation == 0


@pytest.mark.parametrize("path", ["servers", "placements", "operations"])
def test_a_stranger_reads_nothing(db: None, path: str) -> None:
    assert APIClient().get(f"/api/v1/{path}").status_code == 401


def test_an_operator_may_not_change_servers(as_operator: APIClient) -> None:
    assert as_operator.post("/api/v1/servers", SERVER, format="json").status_code == 403

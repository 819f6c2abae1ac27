"""Routes in the console."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.core.models import User
from apps.fleet.models import Placement, Server
from apps.routes.models import Route, Target
from tests.factories import (
    PlacementFactory,
    RouteFactory,
    ServedModelFactory,
    ServerFactory,
    TargetFactory,
)

As = Callable[[User], Client]
QUERIES = 7


@pytest.fixture
def site(operator: User, console_as: As) -> Client:
    return console_as(operator)


def _form(server: Server, *targets: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """What a browser sends: the route's fields and one row for each of `targets`."""
    rows = targets or ({},)
    data: dict[str, Any] = {
        "name": "chat",
        "data_class": "any",
        "is_enabled": "on",
        "default_max_tokens": "256",
        "max_attempts": "3",
        "wait_seconds": "5",
        "max_waiting": "100",
        "targets-TOTAL_FORMS": str(len(rows)),
        "targets-INITIAL_FORMS": "0",
    }
    for index, row in enumerate(rows):
        target = {
            "server": server.pk,
            "upstream_model": "smol",
            "protocol": "triton_generate",
            "tier": "0",
            "weight": "100",
            "is_enabled": "on",
        }
        data |= {f"targets-{index}-{name}": value for name, value in (target | row).items()}
    return data | fields


@pytest.mark.parametrize("count", [3, 30])
def test_the_list_asks_the_same_few_questions_for_any_number_of_rows(
    site: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        TargetFactory.create()

    with django_assert_num_queries(QUERIES):
        response = site.get("/routes/")

    assert len(response.context["rows"]) == count


def test_an_empty_list_says_what_a_route_is(site: Client) -> None:
    assert "No routes yet" in site.get("/routes/").content.decode()


def test_the_list_tells_which_target_is_not_ready(site: Client) -> None:
    server = ServerFactory.create(state=Server.State.ONLINE)
    model = ServedModelFactory.create(name="smol")
    PlacementFactory.create(
        server=server,
        model=model,
        observed=Placement.Observed.READY,
        versions=[{"number": 2, "state": "READY", "reason": ""}],
    )
    route = RouteFactory.create()
    TargetFactory.create(route=route, server=server, upstream_model="smol")
    TargetFactory.create(route=route, server=server, upstream_model="smol", version=3)

    health = site.get("/routes/").context["rows"][0]

    assert (health.tone, str(health.text)) == ("warn", "Degraded")
    assert [str(target.text) for target in health.tiers[0].targets] == [
        "Ready",
        "Version 3 not ready",
    ]
    assert [target.share_percent for target in health.tiers[0].targets] == [50, 50]


def test_a_route_whose_targets_are_all_gone_says_so(site: Client) -> None:
    TargetFactory.create(server__state=Server.State.UNREACHABLE)

    assert "No target ready" in site.get("/routes/").content.decode()


def test_search_finds_by_name(site: Client) -> None:
    RouteFactory.create(name="chat-large")
    RouteFactory.create(name="embed")

    rows = site.get("/routes/?q=chat").context["rows"]

    assert [row.route.name for row in rows] == ["chat-large"]


def test_a_route_is_made_with_its_targets(site: Client) -> None:
    server = ServerFactory.create()

    response = site.post(
        "/routes/new/", _form(server, {}, {"upstream_model": "big", "tier": "1", "version": "2"})
    )

    route = Route.objects.get(name="chat")
    assert response.status_code == 302
    assert response["Location"] == f"/routes/{route.pk}/"
    assert list(route.targets.values_list("upstream_model", "tier", "version")) == [
        ("smol", 0, None),
        ("big", 1, 2),
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "../etc"}, "start with a letter or digit"),
        ({"name": ""}, "This field is required"),
        ({"name": "taken"}, "There is a route of this name already"),
        ({"default_max_tokens": "0"}, "greater than or equal to 1"),
        ({"targets-0-weight": "-1"}, "greater than or equal to 0"),
        ({"targets-0-upstream_model": ""}, "This field is required"),
        ({"targets-TOTAL_FORMS": "0"}, "A route needs at least one target"),
        ({"targets-TOTAL_FORMS": "999999999"}, "Please submit at most 50"),
    ],
)
def test_a_mistake_is_named_at_its_field_and_nothing_is_saved(
    site: Client, fields: dict[str, str], words: str
) -> None:
    RouteFactory.create(name="taken")

    response = site.post("/routes/new/", _form(ServerFactory.create(), **fields))

    assert response.status_code == 400
    assert words in response.content.decode()
    assert Route.objects.count() == 1


def test_what_the_service_refuses_is_said_at_the_target(site: Client) -> None:
    server = ServerFactory.create(kind=Server.Kind.OPENAI, is_external=True)
    rows = [{"protocol": "openai"}, {"protocol": "openai", "upstream_model": "big", "version": "3"}]

    response = site.post("/routes/new/", _form(server, *rows))

    errors = [form.errors for form in response.context["targets"].forms]
    assert response.status_code == 400
    assert list(errors[0]) == []
    assert list(errors[1]) == ["version"]
    assert not Route.objects.exists()


def test_the_same_target_twice_is_refused(site: Client) -> None:
    response = site.post("/routes/new/", _form(ServerFactory.create(), {}, {}))

    assert response.status_code == 400
    assert "listed twice" in response.content.decode()


def test_another_target_is_added_without_script(site: Client) -> None:
    response = site.post("/routes/new/", _form(ServerFactory.create(), add_target="1", name=""))

    body = response.content.decode()
    assert response.status_code == 200
    assert 'name="targets-1-server"' in body
    assert "This field is required" not in body
    assert not Route.objects.exists()


def test_a_model_page_fills_in_the_first_target(site: Client) -> None:
    ServerFactory.create(name="triton-a")
    ServedModelFactory.create(name="smollm2", kind="llm")

    response = site.get("/routes/new/?server=triton-a&model=smollm2")

    assert response.context["targets"].forms[0].initial["protocol"] == "triton_generate"
    assert 'value="smollm2"' in response.content.decode()


def test_a_model_alone_is_offered_on_the_server_where_it_is_ready(site: Client) -> None:
    model = ServedModelFactory.create(name="minilm", kind="embedding")
    PlacementFactory.create(model=model)
    ready = PlacementFactory.create(
        model=model, versions=[{"number": 1, "state": "READY", "reason": ""}]
    )

    first = site.get("/routes/new/?model=minilm").context["targets"].forms[0].initial

    assert (first["server"], first["protocol"]) == (ready.server_id, "triton_infer")


def test_an_edit_keeps_changes_and_removes_targets(site: Client) -> None:
    route = RouteFactory.create(name="chat")
    server = ServerFactory.create()
    kept = TargetFactory.create(route=route, server=server, upstream_model="kept")
    gone = TargetFactory.create(route=route, server=server, upstream_model="gone")
    rows = [
        {"server": kept.server_id, "upstream_model": "kept", "weight": "30"},
        {"server": gone.server_id, "upstream_model": "gone", "DELETE": "on"},
    ]
    data = _form(kept.server, *rows, description="For tests") | {"targets-INITIAL_FORMS": "2"}

    response = site.post(f"/routes/{route.pk}/edit/", data)

    route.refresh_from_db()
    assert response.status_code == 302
    assert route.description == "For tests"
    assert list(route.targets.values_list("upstream_model", "weight")) == [("kept", 30)]


def test_the_detail_shows_targets_policy_how_to_call_it_and_history(site: Client) -> None:
    site.post("/routes/new/", _form(ServerFactory.create(name="gpu-1"), description="Ours"))

    body = site.get(f"/routes/{Route.objects.get().pk}/").content.decode()

    for words in ("gpu-1", "Ours", "curl", "from openai import OpenAI", "route.create"):
        assert words in body


def test_a_route_is_switched_off_and_on(site: Client) -> None:
    route = TargetFactory.create().route

    site.post(f"/routes/{route.pk}/switch/", {"enabled": "false"})
    route.refresh_from_db()
    assert not route.is_enabled

    site.post(f"/routes/{route.pk}/switch/", {"enabled": "true"})
    route.refresh_from_db()
    assert route.is_enabled


def test_delete_asks_first_and_names_what_stops(site: Client) -> None:
    route = TargetFactory.create(route__name="chat").route

    asked = site.get(f"/routes/{route.pk}/delete/").content.decode()
    assert "chat" in asked
    assert Route.objects.exists()

    site.post(f"/routes/{route.pk}/delete/")
    assert not Route.objects.exists()
    assert not Target.objects.exists()


@pytest.mark.parametrize("path", ["new/", "{pk}/edit/", "{pk}/delete/", "{pk}/switch/"])
def test_the_viewer_may_not_change_routes(viewer: User, console_as: As, path: str) -> None:
    route = TargetFactory.create().route

    response = console_as(viewer).post(f"/routes/{path.format(pk=route.pk)}")

    assert response.status_code == 403
    assert Route.objects.filter(pk=route.pk, is_enabled=True).exists()


def test_the_viewer_sees_routes_without_the_buttons(viewer: User, console_as: As) -> None:
    route = TargetFactory.create().route

    body = console_as(viewer).get(f"/routes/{route.pk}/").content.decode()

    assert route.name in body
    assert f"/routes/{route.pk}/edit/" not in body

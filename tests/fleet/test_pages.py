"""Servers and placements in the console."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.core.models import AuditEntry, User
from apps.fleet import words
from apps.fleet.models import Gpu, Operation, Placement, Server
from apps.fleet.templatetags.fleet import elapsed_ratio
from tests.factories import (
    OperationFactory,
    PlacementFactory,
    ServedModelFactory,
    ServerFactory,
    TargetFactory,
)

As = Callable[[User], Client]
READY = [{"number": 2, "state": "READY", "reason": ""}]
# Session, user; then count and rows of the list.
LIST_QUERIES = 4
# Session, user; server, GPUs, placements, their newest operations.
SERVER_QUERIES = 6


@pytest.fixture
def site(operator: User, console_as: As) -> Client:
    return console_as(operator)


@pytest.fixture
def triton() -> Server:
    return ServerFactory.create(name="triton-a", control_mode=Server.ControlMode.EXPLICIT)


@pytest.fixture
def ready(triton: Server) -> Placement:
    model = ServedModelFactory.create(name="smollm2")
    return PlacementFactory.create(server=triton, model=model, observed="ready", versions=READY)


def _html(client: Client, url: str, **headers: str) -> str:
    response = client.get(url, headers=headers)
    assert response.status_code == 200, response.content
    return response.content.decode()


@pytest.mark.parametrize("count", [3, 30])
def test_the_list_asks_the_same_few_questions_for_any_number_of_servers(
    site: Client, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(count):
        PlacementFactory.create(observed="ready")

    with django_assert_num_queries(LIST_QUERIES):
        html = _html(site, "/fleet/")

    assert html.count('data-unit="per_second"') == count


@pytest.mark.parametrize("count", [3, 30])
def test_a_server_asks_the_same_few_questions_for_any_number_of_models(
    site: Client,
    triton: Server,
    count: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for _number in range(count):
        OperationFactory.create(placement=PlacementFactory.create(server=triton))

    with django_assert_num_queries(SERVER_QUERIES):
        html = _html(site, f"/fleet/{triton.pk}/")

    assert html.count('<tbody id="placement-') == count


def test_an_empty_fleet_says_what_comes_first(site: Client, admin: User, console_as: As) -> None:
    assert "No server yet" in _html(site, "/fleet/")
    assert "An admin can add one" in _html(site, "/fleet/")
    assert "/fleet/new/" in _html(console_as(admin), "/fleet/")


def test_the_list_is_narrowed_and_sorted_by_its_address(site: Client) -> None:
    ServerFactory.create(name="alpha", state=Server.State.ONLINE)
    ServerFactory.create(name="beta", state=Server.State.UNREACHABLE)
    ServerFactory.create(name="gamma", state=Server.State.ONLINE)

    narrowed = _html(site, "/fleet/?state=online")
    turned = _html(site, "/fleet/?sort=-name")

    assert "alpha" in narrowed
    assert "beta" not in narrowed
    assert turned.index("gamma") < turned.index("alpha")
    assert 'aria-sort="descending"' in turned
    assert "No server fits" in _html(site, "/fleet/?q=nothing-like-it")


def test_an_unknown_sort_or_filter_does_no_harm(site: Client) -> None:
    ServerFactory.create(name="alpha")

    assert "alpha" in _html(site, "/fleet/?sort=password&state=&page=99")


def test_the_list_can_be_had_as_csv(site: Client) -> None:
    ServerFactory.create(name="alpha")
    response = site.get("/fleet/export.csv")

    text = b"".join(response).decode()

    assert text.startswith("server,kind,state,")
    assert "alpha,triton," in text


def test_a_name_that_looks_like_markup_stays_text(site: Client, triton: Server) -> None:
    PlacementFactory.create(
        server=triton, observed="unavailable", reason="<script>alert(1)</script>"
    )

    html = _html(site, f"/fleet/{triton.pk}/")

    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_a_failure_is_told_in_words_under_its_row(site: Client, ready: Placement) -> None:
    OperationFactory.create(
        placement=ready,
        state=Operation.State.FAILED,
        finished_at=timezone.now(),
        verdict={"code": "partly_loaded", "versions": [2, 1]},
        reason="weights file corrupt",
    )

    html = _html(site, f"/fleet/{ready.server_id}/")

    assert "v2, v1" in html
    assert "weights file corrupt" in html


def test_an_open_operation_shows_progress_and_no_second_button(
    site: Client, ready: Placement
) -> None:
    OperationFactory.create(placement=ready, state=Operation.State.OBSERVING)

    row = _html(site, f"/fleet/placements/{ready.pk}/row/")

    assert "<progress" in row
    assert "Loading" in row
    assert "<form" not in row


def test_load_from_a_page_answers_the_row_and_a_toast(site: Client, triton: Server) -> None:
    placement = PlacementFactory.create(server=triton, observed="unloaded")

    response = site.post(
        f"/fleet/placements/{placement.pk}/operations/",
        {"kind": "load"},
        headers={"HX-Request": "true"},
    )

    assert response.status_code == 200
    assert f'<tbody id="placement-{placement.pk}"' in response.content.decode()
    assert "on its way" in json.loads(response["HX-Trigger"])["toast"]["text"]
    assert Operation.objects.get().requested_by_label == "operator"


def test_load_without_script_goes_back_to_the_server_and_says_so(
    site: Client, triton: Server
) -> None:
    placement = PlacementFactory.create(server=triton, observed="unloaded")

    response = site.post(
        f"/fleet/placements/{placement.pk}/operations/", {"kind": "load"}, follow=True
    )

    assert response.redirect_chain == [(f"/fleet/{triton.pk}/", 302)]
    assert "on its way" in response.content.decode()


@pytest.mark.parametrize(("kind", "status"), [("load", 409), ("explode", 400), ("", 400)])
def test_what_cannot_be_done_is_refused_in_words(
    site: Client, ready: Placement, kind: str, status: int
) -> None:
    OperationFactory.create(placement=ready, state=Operation.State.OBSERVING)

    response = site.post(
        f"/fleet/placements/{ready.pk}/operations/", {"kind": kind}, headers={"HX-Request": "true"}
    )

    assert response.status_code == status
    assert "data-error" in response.content.decode()
    assert Operation.objects.count() == 1


def test_a_viewer_sees_no_buttons_and_may_not_press_them(
    viewer: User, console_as: As, ready: Placement
) -> None:
    client = console_as(viewer)

    html = _html(client, f"/fleet/{ready.server_id}/")
    response = client.post(f"/fleet/placements/{ready.pk}/operations/", {"kind": "unload"})

    assert f"placement-{ready.pk}-main" not in html
    assert response.status_code == 403
    assert client.get(f"/fleet/placements/{ready.pk}/unload/").status_code == 403
    assert not Operation.objects.exists()


@pytest.mark.parametrize(
    "url", ["/fleet/", "/fleet/1/", "/fleet/placements/1/row/", "/fleet/new/", "/figures/", "/"]
)
def test_nothing_is_shown_to_strangers(client: Client, db: None, url: str) -> None:
    response = client.get(url)

    assert response.status_code == 302
    assert response["Location"].startswith("/account/login/")


def test_what_does_not_exist_is_told_so(site: Client) -> None:
    assert site.get("/fleet/99/").status_code == 404
    assert site.get("/fleet/placements/99/row/").status_code == 404
    assert site.get("/fleet/placements/99/unload/").status_code == 404


def test_unload_asks_and_names_the_routes_that_lose_the_model(
    site: Client, ready: Placement
) -> None:
    kept, lost = (
        TargetFactory.create(route__name="kept", server=ready.server, upstream_model="smollm2"),
        TargetFactory.create(route__name="lost", server=ready.server, upstream_model="smollm2"),
    )
    other = ServerFactory.create(name="elsewhere", kind="openai_compatible", state="online")
    TargetFactory.create(route=kept.route, server=other, upstream_model="smollm2", tier=1)
    TargetFactory.create(route__name="unrelated", server=ready.server, upstream_model="other")

    part = _html(site, f"/fleet/placements/{ready.pk}/unload/", **{"HX-Request": "true"})
    page = _html(site, f"/fleet/placements/{ready.pk}/unload/")

    assert "smollm2 on elsewhere" in part
    assert part.index(lost.route.name) < part.index("has no other target")
    assert "unrelated" not in part
    assert "<html" not in part
    assert "<html" in page
    assert "hx-post" not in page


def test_a_read_only_server_says_why_there_are_no_buttons(site: Client, ready: Placement) -> None:
    Server.objects.update(control_mode=Server.ControlMode.READ_ONLY)

    html = _html(site, f"/fleet/{ready.server_id}/")

    assert "--model-control-mode=explicit" in html
    assert '<form method="post" action="/fleet/placements' not in html


def test_a_server_that_cannot_run_here_says_why_on_every_page(site: Client) -> None:
    server = ServerFactory.create(is_enabled=False, note="Triton needs libpython3.11.so.1.0.")

    for url in ("/", "/fleet/", f"/fleet/{server.pk}/"):
        assert "Triton needs libpython3.11.so.1.0." in _html(site, url)


def test_gpus_have_a_tab_only_where_they_are_reported(site: Client, triton: Server) -> None:
    without = _html(site, f"/fleet/{triton.pk}/")
    Gpu.objects.create(server=triton, uuid="GPU-1", memory_total_bytes=80 * 2**30)
    with_gpu = _html(site, f"/fleet/{triton.pk}/?tab=gpus")

    assert "?tab=gpus" not in without
    assert "80.0 GiB" in with_gpu
    assert "gpu/GPU-1/utilization_ratio" in with_gpu


@pytest.mark.parametrize("tab", ["operations", "history", "gpus", "nonsense"])
def test_every_tab_opens(site: Client, ready: Placement, tab: str) -> None:
    OperationFactory.create(placement=ready, state="done", finished_at=timezone.now())

    assert "triton-a" in _html(site, f"/fleet/{ready.server_id}/?tab={tab}")


def test_models_pages_get_their_parts_from_the_fleet(site: Client, ready: Placement) -> None:
    states = _html(site, f"/fleet/parts/model-states/?model={ready.model_id}&model=x&model=999")
    placements = _html(site, f"/fleet/parts/models/{ready.model_id}/placements/")
    operations = _html(site, f"/fleet/parts/models/{ready.model_id}/operations/")

    assert "triton-a" in states
    assert "nowhere" in states
    assert "?by=server" in placements
    assert "No operation yet" in operations


FORM = {"name": "gpu-1", "kind": "triton", "url": "http://127.0.0.1:8000", "is_enabled": "on"}


def test_an_admin_adds_changes_and_deletes_a_server(admin: User, console_as: As) -> None:
    client = console_as(admin)

    client.post("/fleet/new/", FORM)
    server = Server.objects.get(name="gpu-1")
    client.post(f"/fleet/{server.pk}/edit/", FORM | {"name": "gpu-2", "note": "rack 4"})
    server.refresh_from_db()

    assert (server.name, server.note) == ("gpu-2", "rack 4")
    assert "goes" in _html(client, f"/fleet/{server.pk}/delete/")
    assert client.post(f"/fleet/{server.pk}/delete/").status_code == 302
    assert not Server.objects.exists()
    assert AuditEntry.objects.filter(action__startswith="server.").count() == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [("url", "ftp://x"), ("url", "http://169.254.169.254/"), ("name", "a b"), ("name", "..")],
)
def test_a_wrong_address_or_name_is_said_at_its_field(
    admin: User, console_as: As, field: str, value: str
) -> None:
    response = console_as(admin).post("/fleet/new/", FORM | {field: value})

    assert response.status_code == 400
    assert field in response.context["form"].errors
    assert not Server.objects.exists()


def test_a_name_that_is_taken_is_refused(admin: User, console_as: As, triton: Server) -> None:
    response = console_as(admin).post("/fleet/new/", FORM | {"name": triton.name})

    assert response.status_code == 400
    assert Server.objects.count() == 1


def test_an_operator_may_not_touch_server_records(site: Client, triton: Server) -> None:
    for url in ("/fleet/new/", f"/fleet/{triton.pk}/edit/", f"/fleet/{triton.pk}/delete/"):
        assert site.get(url).status_code == 403
        assert site.post(url, FORM).status_code == 403


def test_a_kept_key_is_not_shown_and_an_empty_field_keeps_it(admin: User, console_as: As) -> None:
    client = console_as(admin)
    client.post("/fleet/new/", FORM | {"api_key": "secret-upstream-key"})
    server = Server.objects.get()
    kept = server.api_key_encrypted

    html = _html(client, f"/fleet/{server.pk}/edit/")
    client.post(f"/fleet/{server.pk}/edit/", FORM | {"note": "x"})
    server.refresh_from_db()

    assert "secret-upstream-key" not in html
    assert server.api_key_encrypted == kept != ""


def test_words_take_their_parameters_and_forgive_what_is_missing() -> None:
    assert "within 3 seconds" in words.server_words({"code": "timed_out", "seconds": 3.0})
    assert "? seconds" in words.server_words({"code": "timed_out"})
    assert words.server_words({}) == ""
    assert words.verdict_words({"code": "of_tomorrow"}) == "of_tomorrow"


def test_progress_is_bounded() -> None:
    now = timezone.now()
    late = Operation(created_at=now - timedelta(hours=2), deadline_at=now)
    early = Operation(created_at=now, deadline_at=now + timedelta(hours=2))

    assert elapsed_ratio(late) == 1.0
    assert 0 <= elapsed_ratio(early) < 0.01

"""Routes and their targets: together or not at all."""

from functools import partial
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from apps.core.actors import SYSTEM, Actor
from apps.core.audit import history_of
from apps.core.errors import ConflictError, InvalidRequestError, PermissionDeniedError
from apps.core.models import User
from apps.core.redis import connection
from apps.fleet.models import Server
from apps.routes import selectors, services
from apps.routes.models import Route, Target
from tests.factories import RouteFactory, ServerFactory, TargetFactory
from tests.support.races import at_once


@pytest.fixture
def engine(db: None) -> Server:
    return ServerFactory.create(name="engine", kind=Server.Kind.VLLM)


@pytest.fixture
def triton(db: None) -> Server:
    return ServerFactory.create(name="triton")


def _to(server: Server, **values: Any) -> dict[str, Any]:
    protocol = "triton_generate" if server.is_triton else "openai"
    return {"server_id": server.pk, "upstream_model": "chat", "protocol": protocol} | values


def test_a_route_is_made_with_its_targets(
    actor: Actor,
    engine: Server,
    triton: Server,
    empty_redis: None,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    targets = [_to(engine, tier=1), _to(triton, version=2, weight=7)]

    with django_capture_on_commit_callbacks(execute=True):
        route = services.route_create(actor=actor, name="meta/chat:free", targets=targets)

    found = list(selectors.route_get(route.pk).targets.all())
    assert [(t.tier, t.weight, t.version, t.server.name) for t in found] == [
        (0, 7, 2, "triton"),
        (1, 100, None, "engine"),
    ]
    assert connection().get("inferadmin.version.config") == b"1"
    assert len(history_of(route)[0].after["targets"]) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"wat": 1}, "targets.0.wat"),
        ({"server_id": 12345}, "targets.0.server_id"),
        ({"protocol": "triton_infer"}, "targets.0.protocol"),
        ({"protocol": "smoke-signals"}, "targets.0.protocol"),
        ({"version": 1}, "targets.0.version"),
        ({"tier": 10}, "targets.0.tier"),
        ({"weight": -1}, "targets.0.weight"),
        ({"weight": 10_001}, "targets.0.weight"),
        ({"weight": 0}, "targets"),
        ({"upstream_model": ""}, "targets.0.upstream_model"),
        ({"upstream_model": "a\nb"}, "targets.0.upstream_model"),
    ],
)
def test_what_is_wrong_with_a_target_is_named(
    actor: Actor, engine: Server, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        services.route_create(actor=actor, name="chat", targets=[_to(engine, **change)])

    assert list(caught.value.fields) == [field]
    assert not Route.objects.exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"protocol": "openai"}, "targets.0.protocol"),
        ({"upstream_model": ".."}, "targets.0.upstream_model"),
        ({"upstream_model": "a/b"}, "targets.0.upstream_model"),
        ({"version": 0}, "targets.0.version"),
    ],
)
def test_a_target_on_triton_must_be_one_that_triton_knows(
    actor: Actor, triton: Server, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        services.route_create(actor=actor, name="chat", targets=[_to(triton, **change)])

    assert list(caught.value.fields) == [field]


def test_missing_fields_are_named(actor: Actor) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        services.route_create(actor=actor, name="chat", targets=[{}])

    assert sorted(caught.value.fields) == [
        "targets.0.protocol", "targets.0.server_id", "targets.0.upstream_model",
    ]  # fmt: skip


def test_the_same_target_twice_is_refused(actor: Actor, engine: Server) -> None:
    with pytest.raises(InvalidRequestError, match=r"targets\.1\.upstream_model"):
        services.route_create(actor=actor, name="chat", targets=[_to(engine), _to(engine, tier=1)])


def test_an_on_prem_route_has_no_external_target(actor: Actor) -> None:
    external = ServerFactory.create(kind=Server.Kind.OPENAI, is_external=True)

    with pytest.raises(InvalidRequestError, match="on-prem only"):
        services.route_create(
            actor=actor, name="chat", data_class="on_prem", targets=[_to(external)]
        )
    route = services.route_create(actor=actor, name="chat", targets=[_to(external)])
    with pytest.raises(InvalidRequestError, match="on-prem only"):
        services.route_update(actor=actor, route_id=route.pk, data_class="on_prem")


def test_a_tier_is_taken_out_by_disabling_not_by_weights_of_zero(
    actor: Actor, engine: Server, triton: Server
) -> None:
    drained = [_to(triton), _to(engine, tier=1, weight=0)]

    with pytest.raises(InvalidRequestError, match="tier 1"):
        services.route_create(actor=actor, name="chat", targets=drained)
    drained[1]["is_enabled"] = False

    assert services.route_create(actor=actor, name="chat", targets=drained).pk


@pytest.mark.parametrize("name", ["", "..", "a b", "/x", "é"])
def test_names_are_checked(actor: Actor, engine: Server, name: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        services.route_create(actor=actor, name=name, targets=[_to(engine)])

    assert list(caught.value.fields) == ["name"]
    assert not Target.objects.exists()


def test_timeouts_are_positive(actor: Actor, engine: Server) -> None:
    with pytest.raises(InvalidRequestError, match="idle_timeout_seconds"):
        services.route_create(
            actor=actor, name="chat", targets=[_to(engine)], idle_timeout_seconds=0
        )


def test_a_name_is_given_once(actor: Actor, engine: Server) -> None:
    RouteFactory.create(name="chat")

    with pytest.raises(ConflictError):
        services.route_create(actor=actor, name="chat", targets=[_to(engine)])

    assert not Target.objects.exists()


def test_targets_that_stay_keep_their_ids(actor: Actor, engine: Server, triton: Server) -> None:
    route = services.route_create(
        actor=actor, name="chat", targets=[_to(engine), _to(engine, upstream_model="old")]
    )
    kept = Target.objects.get(upstream_model="chat").pk

    services.route_update(
        actor=actor, route_id=route.pk, targets=[_to(engine, weight=5), _to(triton)]
    )

    found = {target.upstream_model: target for target in Target.objects.filter(server=engine)}
    assert list(found) == ["chat"]
    assert (found["chat"].pk, found["chat"].weight) == (kept, 5)
    assert Target.objects.filter(server=triton).count() == 1


def test_an_update_that_fails_changes_nothing(actor: Actor, engine: Server) -> None:
    route = services.route_create(actor=actor, name="chat", targets=[_to(engine)])

    with pytest.raises(InvalidRequestError):
        services.route_update(
            actor=actor, route_id=route.pk, name="other", targets=[_to(engine, tier=99)]
        )

    route.refresh_from_db()
    assert (route.name, route.targets.count()) == ("chat", 1)


def test_the_audit_holds_what_has_changed(actor: Actor, engine: Server) -> None:
    route = services.route_create(actor=actor, name="chat", targets=[_to(engine)])

    services.route_update(actor=actor, route_id=route.pk, is_enabled=False)
    services.route_update(actor=actor, route_id=route.pk, targets=[_to(engine)])

    entries = [(entry.action, entry.before, entry.after) for entry in history_of(route)]
    assert entries[0] == ("route.update", {"is_enabled": True}, {"is_enabled": False})
    assert len(entries) == 2


def test_a_route_is_deleted_with_its_targets(actor: Actor) -> None:
    route = TargetFactory.create().route

    services.route_delete(actor=actor, route_id=route.pk)

    assert not Route.objects.exists()
    assert history_of(route)[0].action == "route.delete"


def test_the_viewer_may_not(viewer: User) -> None:
    actor = Actor(user=viewer, label="viewer")
    route = RouteFactory.create()

    for write in (
        partial(services.route_create, name="chat", targets=[]),
        partial(services.route_update, route_id=route.pk, is_enabled=False),
        partial(services.route_delete, route_id=route.pk),
    ):
        with pytest.raises(PermissionDeniedError):
            write(actor=actor)


@pytest.mark.django_db(transaction=True)
def test_two_updates_at_once_leave_one_of_the_two_sets() -> None:
    first, second = (ServerFactory.create(kind=Server.Kind.VLLM) for _number in range(2))
    route = RouteFactory.create()
    update = partial(services.route_update, actor=SYSTEM, route_id=route.pk)

    at_once([partial(update, targets=[_to(server)]) for server in (first, second)])

    assert Target.objects.count() == 1

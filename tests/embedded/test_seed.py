"""The first records are made once, and the way in keeps working."""

from pathlib import Path

import pytest
from django.contrib.auth import authenticate

from apps.billing.models import Price
from apps.core.models import ManagementToken, User
from apps.core.roles import Role
from apps.core.secrets import digest_of
from apps.fleet.models import Operation, Placement, Server
from apps.keys.models import ApiKey
from apps.routes.models import Route, Target
from inferadmin.embedded.plan import ModelServer, Plan
from inferadmin.embedded.seed import LLAMA_CPP, TRITON, seed
from inferadmin.embedded.var import Credentials

pytestmark = pytest.mark.django_db


def plan(*, triton_port: int | None = 9000, obstacle: str = "") -> Plan:
    triton = ModelServer(
        url=f"http://127.0.0.1:{triton_port}",
        metrics_url="http://127.0.0.1:9002/metrics",
        grpc_address="127.0.0.1:9001",
    )
    return Plan(
        url="http://127.0.0.1:8080",
        triton=triton if triton_port else None,
        triton_obstacle=obstacle,
        llama_cpp=ModelServer(
            "http://127.0.0.1:9100", "http://127.0.0.1:9100/metrics", api_key="k"
        ),
        llama_cpp_model="smollm2-135m-instruct",
        folder=Path("unused"),
    )


def test_everything_of_the_walk_is_there() -> None:
    made = seed(plan(), Credentials())

    user = authenticate(username="admin", password=made.credentials["password"])
    assert isinstance(user, User)
    assert user.role == Role.ADMIN
    assert ApiKey.objects.get().digest == digest_of(made.credentials["api_key"])
    token = ManagementToken.objects.get()
    assert token.digest == digest_of(made.credentials["management_token"])
    assert set(Route.objects.values_list("name", flat=True)) == {
        "smollm2",
        "smollm2-llamacpp",
        "minilm",
    }
    assert list(Target.objects.filter(route__name="smollm2").values_list("tier", flat=True)) == [
        0,
        1,
    ]
    assert Price.objects.count() == 3


def test_models_are_asked_for_as_an_operator_would() -> None:
    made = seed(plan(), Credentials())

    assert sorted(made.loading) == ["language-id", "minilm", "smollm2"]
    assert Operation.objects.filter(kind="load", state="pending").count() == 3


def test_second_start_changes_addresses_and_nothing_else() -> None:
    first = seed(plan(), Credentials())
    Route.objects.get(name="minilm").delete()

    second = seed(plan(triton_port=9500), first.credentials)

    assert second.credentials == first.credentials
    assert Server.objects.get(name=TRITON).url == "http://127.0.0.1:9500"
    assert not Route.objects.filter(name="minilm").exists()
    assert (Price.objects.count(), ApiKey.objects.count()) == (3, 1)


def test_model_that_was_unloaded_on_purpose_stays_unloaded() -> None:
    first = seed(plan(), Credentials())
    Operation.objects.all().delete()
    Placement.objects.filter(model__name="minilm").update(desired=Placement.Desired.UNLOADED)

    assert sorted(seed(plan(), first.credentials).loading) == ["language-id", "smollm2"]


def test_lost_credentials_are_made_anew() -> None:
    first = seed(plan(), Credentials()).credentials

    second = seed(plan(), Credentials()).credentials

    assert second["password"] != first["password"]
    assert authenticate(username="admin", password=second["password"]) is not None
    assert ApiKey.objects.filter(digest=digest_of(second["api_key"])).exists()


def test_where_triton_cannot_run_its_record_says_why() -> None:
    made = seed(plan(triton_port=None, obstacle="no libpython3.11"), Credentials())

    triton = Server.objects.get(name=TRITON)
    assert triton.is_enabled is False
    assert "no libpython3.11" in triton.note
    assert made.loading == []
    assert Server.objects.get(name=LLAMA_CPP).is_enabled


def test_triton_that_can_run_after_all_gets_its_models() -> None:
    first = seed(plan(triton_port=None, obstacle="no libpython3.11"), Credentials())

    second = seed(plan(), first.credentials)

    assert Server.objects.get(name=TRITON).is_enabled
    assert sorted(second.loading) == ["language-id", "minilm", "smollm2"]


def test_plan_survives_the_way_to_the_other_process() -> None:
    for one in (plan(), plan(triton_port=None, obstacle="why")):
        assert Plan.from_json(one.to_json()) == one

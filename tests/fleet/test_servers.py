"""Server records: addresses, keys, what stands in the way of a deletion."""

import pytest
from pytest_django import Settings

from apps.core.actors import Actor
from apps.core.audit import history_of
from apps.core.errors import ConflictError, InvalidRequestError, PermissionDeniedError
from apps.core.models import User
from apps.core.secrets import decrypt
from apps.fleet.models import Placement, Server
from apps.fleet.services import servers
from tests.factories import PlacementFactory, ServerFactory, TargetFactory


def _create(actor: Actor, **values: object) -> Server:
    facts = {"name": "gpu-1", "kind": "triton", "url": "http://10.0.0.1:8000"} | values
    return servers.server_create(actor=actor, **facts)  # type: ignore[arg-type]


def test_a_server_is_kept_with_its_key_encrypted(actor: Actor) -> None:
    server = _create(actor, api_key="sk-upstream-1")

    assert "sk-upstream-1" not in str(Server.objects.values().get())
    assert decrypt(server.api_key_encrypted) == "sk-upstream-1"
    entry = history_of(server)[0]
    assert (entry.action, entry.after["has_api_key"]) == ("server.create", True)
    assert "sk-upstream-1" not in str(entry.after)


@pytest.mark.parametrize(
    "typed", ["sk-1", " sk-1\n", "'sk-1'", '"sk-1"', "Bearer sk-1", "bearer  sk-1 "]
)
def test_what_people_copy_along_with_a_key_is_taken_off(actor: Actor, typed: str) -> None:
    assert decrypt(_create(actor, api_key=typed).api_key_encrypted) == "sk-1"


@pytest.mark.parametrize("typed", ["sk 1", "sk-1\nX-Evil: 1", "sk-\u00e9", "x" * 1001, "sk-\x00"])
def test_what_cannot_be_a_key_is_refused(actor: Actor, typed: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        _create(actor, api_key=typed)

    assert list(caught.value.fields) == ["api_key"]
    assert typed not in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "",
        "gpu-1:8000",
        "ftp://gpu-1",
        "file:///etc/passwd",
        "http://",
        "http://user:secret@gpu-1",
        "http://gpu-1?x=1",
        "http://gpu-1/#x",
        "http://gpu-1/a/../b",
        "http://gpu-1/%2e%2e/b",
        "http://gpu-1//b",
        "http://gpu-1/a b",
        "http://gpu-1\\@evil",
        "http://gpu-1\r\nHost: evil",
        "http://gpu-1:99999",
        "http://169.254.169.254/latest",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
    ],
)
def test_urls_that_lead_elsewhere_are_refused(actor: Actor, url: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        _create(actor, url=url)

    assert list(caught.value.fields) == ["url"]
    assert not Server.objects.exists()


@pytest.mark.parametrize(
    ("kind", "typed", "kept"),
    [
        ("triton", "http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("triton", " https://10.1.2.3/tritons/a ", "https://10.1.2.3/tritons/a"),
        ("triton", "http://[::1]:8000", "http://[::1]:8000"),
        ("vllm", "http://10.0.0.1:8000/v1", "http://10.0.0.1:8000"),
        ("openai", "https://8.8.8.8/v1/", "https://8.8.8.8"),
    ],
)
def test_usual_addresses_pass(actor: Actor, kind: str, typed: str, kept: str) -> None:
    assert _create(actor, kind=kind, url=typed).url == kept


def test_the_setting_narrows_where_servers_may_be(actor: Actor, settings: Settings) -> None:
    settings.ALLOWED_TARGET_NETWORKS = ["10.0.0.0/8"]

    assert _create(actor).url == "http://10.0.0.1:8000"
    with pytest.raises(InvalidRequestError, match="ALLOWED_TARGET_NETWORKS"):
        _create(actor, name="gpu-2", url="http://127.0.0.1:8000")
    with pytest.raises(InvalidRequestError, match="grpc_address"):
        _create(actor, name="gpu-2", grpc_address="127.0.0.1:8001")


@pytest.mark.parametrize("address", ["gpu-1", "gpu-1:0", "gpu-1:70000", "http://gpu-1:1", "a b:1"])
def test_a_grpc_address_is_host_and_port(actor: Actor, address: str) -> None:
    with pytest.raises(InvalidRequestError, match="host:port"):
        _create(actor, grpc_address=address)


@pytest.mark.parametrize("name", ["", "..", "a b", "-x", "é", "x" * 129])
def test_names_are_safe(actor: Actor, name: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        _create(actor, name=name)

    assert list(caught.value.fields) == ["name"]


def test_a_name_is_given_once(actor: Actor) -> None:
    _create(actor)

    with pytest.raises(ConflictError, match="already"):
        _create(actor)


def test_paid_apis_are_external_unless_said_otherwise(actor: Actor) -> None:
    url = "https://8.8.8.8"

    assert _create(actor, kind="openai", url=url).is_external
    assert not _create(actor, name="b", kind="vllm", url=url).is_external
    assert not _create(actor, name="c", kind="openai", url=url, is_external=False).is_external


def test_a_key_is_not_sent_to_another_host_unasked(actor: Actor) -> None:
    server = _create(actor, api_key="sk-1")
    update = servers.server_update

    with pytest.raises(InvalidRequestError, match="api_key"):
        update(actor=actor, server_id=server.pk, url="http://10.0.0.2:8000")

    same_host = update(actor=actor, server_id=server.pk, url="http://10.0.0.1:8000/prefix")
    moved = update(actor=actor, server_id=server.pk, url="http://10.0.0.2:8000", api_key="sk-2")
    assert decrypt(same_host.api_key_encrypted) == "sk-1"
    assert decrypt(moved.api_key_encrypted) == "sk-2"


def test_a_server_that_moves_is_another_one_until_it_was_looked_at(actor: Actor) -> None:
    server = _create(actor)
    Server.objects.update(state="online", control_mode="read_only")
    versions = [{"number": 1, "state": "READY", "reason": ""}]
    placement = PlacementFactory.create(server=server, observed="ready", versions=versions)

    servers.server_update(actor=actor, server_id=server.pk, url="http://10.0.0.2:8000")

    server.refresh_from_db()
    placement.refresh_from_db()
    assert (server.state, server.control_mode) == ("unknown", "unknown")
    assert (placement.observed, placement.versions) == ("unknown", [])


def test_the_audit_holds_what_has_changed(actor: Actor) -> None:
    server = _create(actor)

    servers.server_update(actor=actor, server_id=server.pk, note="rack 7", name="gpu-1")
    servers.server_update(actor=actor, server_id=server.pk, note="rack 7")

    entries = [(entry.action, entry.before, entry.after) for entry in history_of(server)]
    assert entries[0] == ("server.update", {"note": ""}, {"note": "rack 7"})
    assert len(entries) == 2


def test_a_server_that_routes_point_to_stays(actor: Actor) -> None:
    server = TargetFactory.create(upstream_model="chat").server

    with pytest.raises(ConflictError, match="chat on"):
        servers.server_delete(actor=actor, server_id=server.pk)

    assert Server.objects.filter(pk=server.pk).exists()


def test_a_server_is_deleted_with_its_placements(actor: Actor) -> None:
    placement = PlacementFactory.create()

    servers.server_delete(actor=actor, server_id=placement.server_id)

    assert not Server.objects.exists()
    assert not Placement.objects.exists()


def test_an_operator_may_not_change_servers(operator: User) -> None:
    actor = Actor(user=operator, label="operator")
    server = ServerFactory.create()

    with pytest.raises(PermissionDeniedError):
        _create(actor)
    with pytest.raises(PermissionDeniedError):
        servers.server_update(actor=actor, server_id=server.pk, note="x")
    with pytest.raises(PermissionDeniedError):
        servers.server_delete(actor=actor, server_id=server.pk)

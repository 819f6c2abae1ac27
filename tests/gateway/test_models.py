"""`GET /v1/models` and `GET /v1/models/{id}`."""

from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.factories import RouteFactory
from tests.gateway.conftest import Serve


def test_a_key_sees_the_models_that_it_may_use(serve: Serve, key: ApiKey, route: Route) -> None:
    RouteFactory.create(name="off", is_enabled=False)
    RouteFactory.create(name="meta/llama:8b")
    client = serve()

    listed = client.get("/v1/models").json()

    assert listed["object"] == "list"
    assert [item["id"] for item in listed["data"]] == ["chat", "meta/llama:8b"]
    assert listed["data"][0] == {
        "id": "chat",
        "object": "model",
        "created": int(route.created_at.timestamp()),
        "owned_by": "inferadmin",
    }
    assert client.get("/v1/models/meta/llama:8b").json() == listed["data"][1]


def test_a_key_with_a_list_sees_nothing_else(serve: Serve, key: ApiKey, route: Route) -> None:
    key.allows_all_routes = False
    key.save()
    key.routes.add(RouteFactory.create(name="mine"))
    client = serve()

    assert [item["id"] for item in client.get("/v1/models").json()["data"]] == ["mine"]
    assert client.get("/v1/models/chat").status_code == 403
    assert client.get("/v1/models/none").status_code == 404

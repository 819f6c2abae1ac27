"""Keys that are kept to networks, and the headers that a key may come in."""

from typing import Any

import pytest

from apps.gateway.callers import address_of
from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.gateway.conftest import SECRET, Serve


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "seen"),
    [
        ([], "203.0.113.7", "10.0.0.1", "203.0.113.7"),
        (["10.0.0.0/8"], "10.0.0.2", "192.0.2.1, 203.0.113.7, 10.0.0.9", "203.0.113.7"),
        (["10.0.0.0/8"], "203.0.113.7", "192.0.2.1", "203.0.113.7"),
        (["10.0.0.0/8"], "10.0.0.2", "", "10.0.0.2"),
        (["10.0.0.0/8"], "10.0.0.2", "nonsense", "None"),
        (["::/0"], "::1", "2001:db8::5", "2001:db8::5"),
        ([], "::ffff:192.0.2.1", "", "192.0.2.1"),
    ],
)
def test_only_trusted_proxies_are_believed(
    settings: Any, proxies: list[str], peer: str, forwarded: str, seen: str
) -> None:
    settings.TRUSTED_PROXIES = proxies

    found = address_of({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded})

    assert str(found) == seen


def test_a_key_kept_to_networks_is_refused_from_elsewhere(
    serve: Serve, key: ApiKey, route: Route, settings: Any
) -> None:
    settings.TRUSTED_PROXIES = ["127.0.0.0/8"]
    ApiKey.objects.update(allowed_networks=["192.0.2.0/24", "2001:db8::/32"])
    client = serve()
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}]}

    def status(address: str) -> int:
        answer = client.post("/v1/chat/completions", body, **{"x-forwarded-for": address})
        return answer.status_code

    assert [status("192.0.2.9"), status("2001:db8::9"), status("198.51.100.1")] == [200, 200, 403]
    refused = client.get("/v1/models")
    assert refused.json()["error"]["code"] == "address_not_allowed"
    assert "127.0.0.1" in refused.json()["error"]["message"]


@pytest.mark.parametrize("header", ["x-api-key", "api-key"])
def test_a_key_may_come_in_the_headers_of_other_vendors(
    serve: Serve, key: ApiKey, route: Route, header: str
) -> None:
    client = serve()

    good = client.http.get(f"{client.url}/v1/models", headers={header: SECRET})
    bad = client.http.get(f"{client.url}/v1/models", headers={header: "sk-ia-wrong"})

    assert (good.status_code, bad.status_code) == (200, 401)

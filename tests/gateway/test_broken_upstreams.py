"""Model servers that fail, stall, lie or die, and what the client and the record get to know."""

import time

import httpx
import orjson
import pytest

from apps.core.secrets import encrypt
from apps.fleet.models import Server
from apps.routes.models import Route, Target
from tests.factories import PlacementFactory, PriceFactory, ServedModelFactory
from tests.gateway.conftest import Events, Serve, add_target
from tests.gateway.test_chat_completions import sse, text_of
from tests.support.fake_model_server import FakeModelServer, Script

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def spare(route: Route, model_server: FakeModelServer) -> Target:
    """A second tier on the working server; the first tier is a port where nobody listens."""
    Server.objects.update(url="http://127.0.0.1:9")
    target = add_target(route, tier=1, server={"name": "spare", "url": model_server.url})
    PriceFactory.create(server=target.server, input_per_million=10, output_per_million=20)
    return target


@pytest.mark.parametrize("stream", [False, True])
def test_the_next_tier_answers_when_the_first_is_down(
    serve: Serve, spare: Target, events: Events, stream: bool
) -> None:
    response = serve().chat(stream=stream)

    assert response.status_code == 200
    assert response.headers["x-inferadmin-target"] == "spare/upstream"
    event = events.only()
    assert event["server_name"] == "spare"
    assert event["cost_picos"] == 110_000_000  # at the price of the one that answered
    assert [(item["status"], item["error"]) for item in event["attempts"]] == [
        ("failed", "upstream_unreachable"),
        ("ok", ""),
    ]


def test_what_must_stay_on_prem_never_falls_back_outside(
    serve: Serve, spare: Target, model_server: FakeModelServer, events: Events
) -> None:
    Server.objects.filter(pk=spare.server_id).update(is_external=True)
    Route.objects.update(data_class=Route.DataClass.ON_PREM)

    response = serve().chat()

    assert response.status_code == 502
    assert response.json()["error"]["code"] == "upstream_unreachable"
    assert model_server.seen == []
    assert events.only()["status"] == "error"


def test_only_external_targets_cannot_serve_what_must_stay(
    serve: Serve, route: Route, upstream: Server, events: Events
) -> None:
    Server.objects.update(is_external=True)
    Route.objects.update(data_class=Route.DataClass.ON_PREM)

    response = serve().chat()

    assert response.status_code == 503
    assert response.json()["error"]["code"] == "no_target"
    assert "on-prem" in response.json()["error"]["message"]
    assert events.all() == []


@pytest.mark.parametrize(
    ("status", "told", "code"),
    [
        (400, 400, "request_refused"),
        (401, 502, "upstream_misconfigured"),
        (403, 502, "upstream_misconfigured"),
        (404, 502, "upstream_misconfigured"),
        (408, 502, "upstream_failed"),
        (413, 413, "request_refused"),
        (422, 422, "request_refused"),
        (429, 503, "upstream_busy"),
        (500, 502, "upstream_failed"),
        (503, 503, "upstream_busy"),
        (529, 503, "upstream_busy"),
    ],
)
def test_a_status_of_the_server_becomes_the_right_one(
    serve: Serve,
    route: Route,
    model_server: FakeModelServer,
    events: Events,
    status: int,
    told: int,
    code: str,
) -> None:
    model_server.script = Script(status=status, error="the scripted text", retry_after="7")

    response = serve().chat()

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (told, code)
    assert ("the scripted text" in error["message"]) is (code == "request_refused")
    assert response.headers.get("retry-after") == ("7" if code == "upstream_busy" else None)
    event = events.only()
    assert (event["status"], event["http_status"], event["cost_picos"]) == ("error", told, 0)


def test_a_mistake_of_the_client_is_not_tried_elsewhere(
    serve: Serve, route: Route, model_server: FakeModelServer
) -> None:
    add_target(route, tier=1, server={"url": model_server.url})
    model_server.script = Script(status=400)

    response = serve().chat()

    assert response.json()["error"]["param"] == "messages"
    assert len(model_server.seen) == 1


@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings"])
def test_a_server_that_does_not_implement_an_endpoint_is_not_a_failure(
    serve: Serve, route: Route, model_server: FakeModelServer, events: Events, path: str
) -> None:
    add_target(route, tier=1, server={"url": model_server.url})
    model_server.script = Script(status=501, error="This server does not support it")
    fields = {"messages": [{"role": "user", "content": "Hi"}], "prompt": "Hi", "input": "Hi"}

    response = serve().post(f"/v1/{path}", {"model": "chat", **fields})

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "endpoint_not_supported")
    assert error["param"] == "model"
    assert f"/v1/{path}" in error["message"]
    assert len(model_server.seen) == 1
    event = events.only()
    assert (event["status"], event["http_status"], event["cost_picos"]) == ("error", 400, 0)


def test_what_a_server_says_of_the_request_is_told_without_its_address(
    serve: Serve, route: Route, upstream: Server, model_server: FakeModelServer
) -> None:
    Server.objects.update(api_key_encrypted=encrypt("canary-secret-5e1f"))
    host = model_server.url.removeprefix("http://")
    model_server.script = Script(
        status=400,
        error=f"  'min_p' must be at most 1 (canary-secret-5e1f, see {model_server.url}/docs"
        f" or HTTPS://intern.example/x?y=1, {host}) " + "x" * 1000,
    )

    response = serve().chat()

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "request_refused")
    assert error["message"].startswith("'min_p' must be at most 1 (")
    assert len(error["message"]) <= 300
    for hidden in ("canary", "://", host, "intern.example"):
        assert hidden not in error["message"]


@pytest.mark.parametrize(
    "script",
    [
        Script(cut_after=0),
        Script(garbage_after=0),
        Script(error_after=0),
        Script(tokens=(), sends_done=False, sends_finish_reason=False),
    ],
    ids=["cut", "garbage", "error", "empty"],
)
def test_before_the_first_content_another_target_is_tried(
    serve: Serve, route: Route, model_server: FakeModelServer, events: Events, script: Script
) -> None:
    with FakeModelServer().served() as second:
        add_target(route, tier=1, server={"name": "second", "url": second.url})
        model_server.script = script

        response = serve().chat(stream=True)

    assert text_of(sse(response.text)) == "Hello world"
    assert response.headers["x-inferadmin-target"] == "second/upstream"
    assert [item["status"] for item in events.only()["attempts"]] == ["failed", "ok"]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (Script(cut_after=1), "upstream_cut"),
        (Script(garbage_after=1), "upstream_bad_answer"),
        (Script(error_after=1), "upstream_busy"),
        (
            Script(tokens=("Hello",), sends_done=False, sends_finish_reason=False, usage="none"),
            "upstream_cut",
        ),
    ],
    ids=["cut", "garbage", "error", "clean-end"],
)
def test_after_the_first_content_the_stream_ends_with_an_error(
    serve: Serve,
    route: Route,
    model_server: FakeModelServer,
    events: Events,
    script: Script,
    code: str,
) -> None:
    add_target(route, tier=1, server={"url": model_server.url})
    model_server.script = script

    response = serve().chat(stream=True)

    *chunks, error, done = sse(response.text)
    assert text_of(chunks) == "Hello"
    assert orjson.loads(error)["error"]["code"] == code
    assert done == "[DONE]"
    assert len(model_server.seen) == 1
    event = events.only()
    assert (event["status"], event["error_code"]) == ("partial", code)
    assert 1 <= event["output_tokens"] <= 2
    assert event["is_estimated"] is True


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<html>", "upstream_bad_answer"),
        (b"[]", "upstream_bad_answer"),
        (b'{"error": {"message": "no", "type": "overloaded_error"}}', "upstream_busy"),
        (b'{"choices": 1}', "upstream_bad_answer"),
    ],
)
def test_nonsense_in_a_200_is_a_failure(
    serve: Serve,
    route: Route,
    model_server: FakeModelServer,
    events: Events,
    body: bytes,
    code: str,
) -> None:
    model_server.script = Script(raw_body=body)

    response = serve().chat()

    assert (response.status_code, response.json()["error"]["code"]) == (502, code)
    assert events.only()["error_code"] == code


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_hangs_is_given_up(
    serve: Serve, route: Route, model_server: FakeModelServer, events: Events, stream: bool
) -> None:
    Route.objects.update(first_byte_timeout_seconds=1)
    model_server.script = Script(headers_delay=30)

    started = time.monotonic()
    response = serve().chat(stream=stream)

    assert time.monotonic() - started < 5
    assert response.status_code == 504
    assert response.json()["error"]["code"] == "upstream_timeout"
    assert events.only()["http_status"] == 504
    assert model_server.seen[0].left.wait(2)


def test_a_stream_that_stalls_ends_with_an_error(
    serve: Serve, route: Route, model_server: FakeModelServer, events: Events
) -> None:
    Route.objects.update(idle_timeout_seconds=1)
    model_server.script = Script(gap=30)

    response = serve().chat(stream=True)

    assert orjson.loads(sse(response.text)[-2])["error"]["code"] == "upstream_timeout"
    assert events.only()["status"] == "partial"


def test_all_together_may_not_take_longer_than_allowed(
    serve: Serve, route: Route, model_server: FakeModelServer
) -> None:
    Route.objects.update(total_timeout_seconds=1)
    add_target(route, tier=1, server={"url": model_server.url})
    model_server.script = Script(headers_delay=30)

    started = time.monotonic()

    assert serve().chat().status_code == 504
    assert time.monotonic() - started < 4
    assert len(model_server.seen) == 1


def test_a_model_that_is_not_loaded_is_told_so(serve: Serve, route: Route, events: Events) -> None:
    Server.objects.update(kind=Server.Kind.TRITON)
    Target.objects.update(protocol=Target.Protocol.TRITON_GENERATE, version=2)
    placement = PlacementFactory.create(
        server=Server.objects.get(), model=ServedModelFactory.create(name="upstream")
    )
    placement.versions = [{"number": 1, "state": "READY", "reason": ""}]
    placement.save()

    response = serve().chat()

    assert response.status_code == 503
    assert response.json()["error"]["code"] == "model_not_loaded"
    assert response.headers["retry-after"]
    assert events.all() == []


def test_traffic_in_a_tier_follows_the_weights(
    serve: Serve, route: Route, model_server: FakeModelServer
) -> None:
    Target.objects.update(weight=1)
    add_target(route, weight=0, server={"url": model_server.url}, upstream_model="never")
    add_target(route, weight=9, server={"url": model_server.url}, upstream_model="heavy")
    client = serve()

    for _ in range(60):
        client.chat()

    asked = [seen.body["model"] for seen in model_server.seen]
    assert asked.count("never") == 0
    assert asked.count("heavy") > asked.count("upstream") > 0


def test_no_secret_and_no_prompt_reaches_a_log_or_an_error(
    serve: Serve,
    route: Route,
    upstream: Server,
    model_server: FakeModelServer,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    events: Events,
) -> None:
    canary, prompt = "canary-secret-5e1f", "canary-prompt-77ab"
    Server.objects.update(api_key_encrypted=encrypt(canary))
    client = serve()
    answers: list[httpx.Response] = []

    for script in (
        Script(),
        Script(status=400, error=f"bad key {canary} for {prompt}"),
        Script(status=401, error=f"bad key {canary}"),
        Script(status=500, error=f"{canary} {prompt}"),
        Script(error_after=0, error=f"{canary} {prompt}"),
        Script(cut_after=1),
    ):
        model_server.script = script
        for stream in (False, True):
            messages = [{"role": "user", "content": prompt}]
            body = {"model": "chat", "messages": messages, "stream": stream}
            answers.append(client.post("/v1/chat/completions", body))

    assert model_server.seen[0].headers["authorization"] == f"Bearer {canary}"
    logged = caplog.text + "".join(capfd.readouterr())
    assert canary not in logged
    assert prompt not in logged
    assert client.secret not in logged
    assert all(canary not in answer.text for answer in answers)
    assert canary not in str(events.all())
    assert prompt not in str(events.all())

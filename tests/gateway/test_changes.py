"""What is changed in the console binds on every worker within two seconds."""

from apps.core.actors import Actor
from apps.keys import services
from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.factories import ApiKeyFactory
from tests.gateway.conftest import Serve
from tests.support.fake_model_server import wait_until


def test_a_revoked_key_is_refused_by_every_worker(
    serve: Serve, key: ApiKey, route: Route, actor: Actor
) -> None:
    workers = [serve(), serve()]
    assert [worker.chat().status_code for worker in workers] == [200, 200]

    services.key_revoke(actor=actor, key_id=key.pk)

    wait_until(lambda: {worker.chat().status_code for worker in workers} == {401}, seconds=2)


def test_a_key_that_was_unknown_works_as_soon_as_it_is_issued(
    serve: Serve, key: ApiKey, route: Route, actor: Actor
) -> None:
    client = serve()
    client.secret = "sk-ia-not-there-yet-0123456789"
    assert client.chat().status_code == 401

    ApiKeyFactory.create(secret=client.secret)
    services.key_issue(actor=actor, team_id=key.team_id, name="announces")

    wait_until(lambda: client.chat().status_code == 200, seconds=2)

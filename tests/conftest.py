"""The cast and the clients of the tests."""

from collections.abc import Callable, Iterator

import hypothesis
import pytest
from django.test import Client
from rest_framework.test import APIClient

from apps.core.actors import Actor
from apps.core.models import User
from apps.core.redis import connection
from apps.core.roles import Role
from tests.factories import UserFactory
from tests.support.stack import Stack, running_stack

# A busy machine is slow to make examples; that says nothing about what is tested.
hypothesis.settings.register_profile(
    "busy-machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy-machine")


@pytest.fixture
def viewer(db: None) -> User:
    return UserFactory.create(username="viewer", role=Role.VIEWER)


@pytest.fixture
def operator(db: None) -> User:
    return UserFactory.create(username="operator", role=Role.OPERATOR)


@pytest.fixture
def key_manager(db: None) -> User:
    return UserFactory.create(username="key-manager", role=Role.KEY_MANAGER)


@pytest.fixture
def admin(db: None) -> User:
    return UserFactory.create(username="admin", role=Role.ADMIN)


@pytest.fixture
def actor(admin: User) -> Actor:
    """An admin, as services take it."""
    return Actor(user=admin, label=admin.username)


@pytest.fixture
def api_as() -> Callable[[User], APIClient]:
    """A REST client signed in as somebody: `api_as(operator).post(...)`."""

    def make(user: User) -> APIClient:
        client = APIClient()
        client.force_authenticate(user)
        return client

    return make


@pytest.fixture
def console_as() -> Callable[[User], Client]:
    """A browser session signed in as somebody."""

    def make(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def empty_redis() -> Iterator[None]:
    """Redis without a key, before and after."""
    connection().flushdb()
    yield
    connection().flushdb()


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """One running product for all stories, in a browser or not: each leaves it running."""
    with running_stack() as running:
        yield running

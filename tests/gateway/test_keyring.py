"""The memory of keys, when Postgres hangs."""

import asyncio

import pytest
import redis.asyncio

from apps.core.errors import NoCapacityError
from apps.gateway import keyring
from apps.gateway.keyring import KeyRing
from apps.gateway.snapshot import KeyRow

KEY = KeyRow(
    id=1, name="k", team_id=1, team_name="t", is_team_active=True, expires_at=None,
    revoked_at=None, route_ids=None, limits=(), budgets=(),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "_POSTGRES_SECONDS", 0.1)


async def test_a_key_is_served_from_memory_while_postgres_hangs() -> None:
    version, answers = ["1"], [KEY]

    async def load(digest: str) -> KeyRow | None:
        if not answers:
            await asyncio.Event().wait()
        return answers.pop()

    nowhere = redis.asyncio.Redis(port=9)  # no Redis there either
    ring = KeyRing(nowhere, load, lambda: version[0])
    assert await ring.find("known") is KEY
    version[0] = "2"

    async with asyncio.timeout(5):
        assert await ring.find("known") is KEY
        with pytest.raises(NoCapacityError) as caught:
            await ring.find("unknown")

    assert caught.value.code == "keys_unavailable"

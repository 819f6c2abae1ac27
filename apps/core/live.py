"""Pushing to open pages. Mostly: an object has changed, fetch it again through its normal view."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import redis
import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

log = structlog.get_logger(__name__)

CHANGES_GROUP = "live.changes"
# What cannot be pushed within this time is dropped: pages poll by themselves.
PUSH_SECONDS = 2


class Changed(TypedDict):
    """Payload of a change. `kind` is the model's word: `placement`, `server`, `operation` …"""

    type: str
    kind: str
    id: str
    # Set where the object belongs to a server, so that a server's page can filter.
    server_id: int | None


def changed_on_commit(kind: str, pk: object, *, server_id: int | None = None) -> None:
    """After commit, tell every open page that `kind` `pk` has changed. Never raises."""
    payload = Changed(type="live.changed", kind=kind, id=str(pk), server_id=server_id)
    transaction.on_commit(lambda: push([(CHANGES_GROUP, payload)]))


def push(messages: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Send each payload to its group, in order. Never raises; Redis being away costs 2 s at most.

    For code without a running event loop: services, tasks, ordinary views.
    """
    try:
        async_to_sync(_push)(list(messages))
    except (OSError, redis.RedisError) as exc:  # TimeoutError is an OSError
        log.warning("core.change_not_pushed", error=type(exc).__name__)


async def _push(messages: list[tuple[str, Mapping[str, Any]]]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    async with asyncio.timeout(PUSH_SECONDS):
        for group, payload in messages:
            await layer.group_send(group, dict(payload))

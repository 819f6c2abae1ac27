"""Telling open pages that an object has changed; they fetch it again through its normal view."""

from typing import TypedDict

import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

log = structlog.get_logger(__name__)

CHANGES_GROUP = "live.changes"


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
    transaction.on_commit(lambda: _send(payload))


def _send(payload: Changed) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(layer.group_send)(CHANGES_GROUP, dict(payload))
    except OSError as exc:  # Redis away: pages poll by themselves
        log.warning("core.change_not_pushed", kind=payload["kind"], error=type(exc).__name__)

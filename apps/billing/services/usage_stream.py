"""Reading the usage stream as a member of its consumer group.

An entry stays with its reader until it is taken off the stream; what a reader leaves behind when it
dies, another one claims. So an entry is given out at least once, and may be given out twice.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from apps.billing.events import DEAD_LETTER_STREAM, EVENT_FIELD, USAGE_GROUP, USAGE_STREAM

BATCH_SIZE = 1000
DEAD_LETTERS_KEPT = 100_000
_FIELD = EVENT_FIELD.encode()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the stream; `event` is its JSON, empty when it has none."""

    id: bytes
    event: bytes


@dataclass(frozen=True, slots=True)
class Rejected:
    """An entry that can never be written; `reason` is a code and holds nothing of the event."""

    entry: Entry
    reason: str


class UsageStream:
    """The stream as this process sees it."""

    def __init__(self, client: redis.Redis, *, claim_after_seconds: float) -> None:
        """Entries that another reader has held for `claim_after_seconds` are taken for left."""
        self._client: Any = client  # redis-py types every answer as maybe awaitable
        self._claim_after_ms = int(claim_after_seconds * 1000)
        self._consumer = f"{socket.gethostname()}-{os.getpid()}"

    def batches(self) -> Iterator[list[Entry]]:
        """What waits: first what this process left open, then what others left, then the new.

        Each batch must be finished before the next is asked for.
        """
        self._ensure_group()
        while batch := self._read(b"0"):
            yield batch
        while batch := self._claim():
            yield batch
        while batch := self._read(b">"):
            yield batch

    def finish(self, entries: Sequence[Entry], rejected: Sequence[Rejected]) -> None:
        """Take the entries off the stream, the rejected ones to DEAD_LETTER_STREAM: all or none."""
        pipe = self._client.pipeline(transaction=True)
        for item in rejected:
            fields = {EVENT_FIELD: item.entry.event, "reason": item.reason}
            pipe.xadd(DEAD_LETTER_STREAM, fields, maxlen=DEAD_LETTERS_KEPT)
        ids = [entry.id for entry in entries]
        pipe.xack(USAGE_STREAM, USAGE_GROUP, *ids)
        pipe.xdel(USAGE_STREAM, *ids)
        pipe.execute()

    def _ensure_group(self) -> None:
        try:
            self._client.xgroup_create(USAGE_STREAM, USAGE_GROUP, id="0", mkstream=True)
        except redis.ResponseError as exc:
            if "BUSYGROUP" not in str(exc):
                raise

    def _read(self, position: bytes) -> list[Entry]:
        answer = self._client.xreadgroup(
            USAGE_GROUP, self._consumer, {USAGE_STREAM: position}, count=BATCH_SIZE
        )
        return _entries(answer[0][1]) if answer else []

    def _claim(self) -> list[Entry]:
        _next, found, _deleted = self._client.xautoclaim(
            USAGE_STREAM, USAGE_GROUP, self._consumer, self._claim_after_ms, count=BATCH_SIZE
        )
        return _entries(found)


def _entries(found: list[tuple[bytes, dict[bytes, bytes] | None]]) -> list[Entry]:
    """Entries of an answer; one that was deleted meanwhile comes without fields."""
    return [Entry(id, (fields or {}).get(_FIELD, b"")) for id, fields in found]

"""What waits to be sent to one browser: bounded, newest value first where one replaces another."""

import asyncio

from apps.metrics.events import Frame

MAX_WAITING = 500


class Outbox:
    """Frames for one slow or fast reader.

    A tick replaces the tick of its topic that was not sent yet, and a change the same change:
    a slow reader loses old numbers, never the news that something changed. `add` answers False
    when more than `MAX_WAITING` different things wait: the reader must start anew.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, ...], Frame] = {}
        self._arrived = asyncio.Event()

    def add(self, frame: Frame) -> bool:
        """Queue a frame; False when the reader is hopelessly behind and nothing was queued."""
        key = _key_of(frame)
        if key not in self._waiting and len(self._waiting) >= MAX_WAITING:
            return False
        self._waiting[key] = frame
        self._arrived.set()
        return True

    async def take(self) -> Frame:
        """Wait for the oldest frame and take it out."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.pop(next(iter(self._waiting)))


def _key_of(frame: Frame) -> tuple[str, ...]:
    if frame["type"] == "changed":
        return frame["type"], frame["kind"], frame["id"]
    if frame["type"] == "heartbeat":
        return (frame["type"],)
    return frame["type"], frame["topic"]

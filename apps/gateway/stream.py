"""A stream of a model server, opened up to its first content."""

import asyncio
import contextlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from apps.core.errors import UpstreamError, UpstreamProtocolError
from apps.gateway.adapters.contract import Chunk, StreamReader
from apps.gateway.sse import DONE, Event, EventParser, EventTooLargeError
from apps.gateway.upstream import UpstreamResponse
from apps.gateway.usage import Usage

# Chunks without content that may come first, before they are passed on all the same.
_MAX_OPENING_CHUNKS = 64
_CLOSING_SECONDS = 0.02


@dataclass(slots=True)
class OpenStream:
    """Chunks read so far, and the way to the rest. `keeps` holds the connection open."""

    response: UpstreamResponse
    reader: StreamReader
    opening: list[Chunk] = field(default_factory=list)
    keeps: AsyncExitStack = field(default_factory=AsyncExitStack)
    is_done: bool = False
    # Set once the client gets what is read: from then on a failure comes after what came before it.
    is_shown: bool = False
    _failure: UpstreamError | None = None
    _parser: EventParser = field(default_factory=EventParser)

    async def more(self) -> list[Chunk] | None:
        """Chunks of the next read, perhaps none; `None` when the answer has ended.

        Raises UpstreamError when it breaks off before the server has said that it was done.
        """
        if self.is_done:
            return None
        try:
            return await self.read()
        except UpstreamError:
            if not self.reader.is_finished:
                raise
            self.is_done = True
            return None

    def owed(self) -> list[Chunk]:
        """Chunks that stand at the end and that the server has left out."""
        return self.reader.end()

    def usage(self) -> Usage:
        """Usage so far."""
        return self.reader.usage()

    async def close(self) -> None:
        """Let the connection go; one that is in the middle of an answer is closed."""
        await self.keeps.aclose()

    async def read(self) -> list[Chunk]:
        """Chunks of the next read; at the end of the body those of a last event, `is_done` set."""
        if self._failure is not None:
            raise self._failure
        piece = await self.response.read()
        try:
            events = self._parser.feed(piece) if piece else self._parser.finish()
        except EventTooLargeError as exc:
            raise UpstreamProtocolError("an event of the model server is too large") from exc
        chunks = self._taken(events)
        if not piece:
            self.is_done = True
            if not (self.reader.is_finished or self.reader.ends_by_closing):
                raise UpstreamError(
                    "the model server ended its answer in the middle", code="upstream_cut"
                )
        return chunks

    async def see_the_end(self) -> None:
        """Wait a moment for the end of the body, so that the connection can be used again."""
        with contextlib.suppress(TimeoutError, UpstreamError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self.response.read()

    def _taken(self, events: list[Event]) -> list[Chunk]:
        chunks: list[Chunk] = []
        try:
            for event in events:
                chunks += self.reader.take(event)
                if event.data == DONE:
                    self.is_done = True
                    break
        except UpstreamError as exc:
            if not (chunks and self.is_shown):
                raise
            self._failure = exc
        return chunks


async def open_stream(response: UpstreamResponse, reader: StreamReader) -> OpenStream:
    """Read until there is content (or the end of an empty answer). Raises UpstreamError."""
    stream = OpenStream(response=response, reader=reader)
    while not stream.is_done:
        chunks = await stream.read()
        stream.opening += chunks
        if any(chunk.has_content for chunk in chunks):
            break
        if len(stream.opening) > _MAX_OPENING_CHUNKS:
            break
    stream.is_shown = True
    return stream

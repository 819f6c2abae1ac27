"""Server-sent events, read as the bytes come and written for the strictest of clients.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from dataclasses import dataclass

MAX_EVENT_BYTES = 8 * 1024 * 1024
DONE = b"[DONE]"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLargeError(ValueError):
    """An event has no end within MAX_EVENT_BYTES."""


@dataclass(frozen=True, slots=True)
class Event:
    """Data of an event, its lines joined by line feeds; `name` is "" for the default kind."""

    data: bytes
    name: str = ""


class EventParser:
    """Takes pieces of a stream, cut anywhere, and gives the events that they complete.

    Lines may end with LF, CRLF or CR. Comments, `id` and `retry` are dropped.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0  # the buffer holds no blank line before this
        self._skips_line_feed = False
        self._is_at_start = True

    def feed(self, piece: bytes) -> list[Event]:
        """Events that end in this piece. Raises EventTooLargeError."""
        self._buffer += self._with_line_feeds(piece)
        if self._is_at_start:
            self._drop_byte_order_mark()
        events: list[Event] = []
        start = 0
        while (end := self._buffer.find(b"\n\n", max(start, self._searched))) >= 0:
            _collect(bytes(self._buffer[start:end]), events)
            start = end + 2
        del self._buffer[:start]
        self._searched = max(0, len(self._buffer) - 1)
        if len(self._buffer) > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"an event is larger than {MAX_EVENT_BYTES} bytes")
        return events

    def finish(self) -> list[Event]:
        """The last event where the stream ended without the blank line that it owes."""
        events: list[Event] = []
        _collect(bytes(self._buffer), events)
        self._buffer.clear()
        return events

    def _with_line_feeds(self, piece: bytes) -> bytes:
        if self._skips_line_feed and piece:
            piece = piece.removeprefix(b"\n")
            self._skips_line_feed = False
        if b"\r" not in piece:
            return piece
        self._skips_line_feed = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _drop_byte_order_mark(self) -> None:
        if len(self._buffer) < len(_BYTE_ORDER_MARK):
            if _BYTE_ORDER_MARK.startswith(self._buffer):
                return
        elif self._buffer.startswith(_BYTE_ORDER_MARK):
            del self._buffer[: len(_BYTE_ORDER_MARK)]
        self._is_at_start = False


def _collect(block: bytes, events: list[Event]) -> None:
    """Add the event of the lines between two blank ones, if they hold data."""
    if block.startswith(b"data:") and b"\n" not in block:  # nearly all of them
        events.append(Event(_value(block[5:])))
        return
    data: list[bytes] = []
    name = b""
    for line in block.split(b"\n"):
        field, _colon, value = line.partition(b":")
        if field == b"data":
            data.append(_value(value))
        elif field == b"event":
            name = _value(value)
    if data:
        events.append(Event(b"\n".join(data), name.decode("utf-8", "replace")))


def _value(raw: bytes) -> bytes:
    return raw[1:] if raw.startswith(b" ") else raw


def event_of(data: bytes) -> bytes:
    """JSON data as an event of one line; a line feed in JSON is white space between tokens."""
    if b"\n" in data:
        data = data.replace(b"\n", b" ")
    return b"data: " + data + b"\n\n"

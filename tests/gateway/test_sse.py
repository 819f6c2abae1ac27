"""Server-sent events, however they are written and wherever they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.gateway import sse
from apps.gateway.sse import Event, EventParser, EventTooLargeError, event_of

STREAM = (
    "\ufeff: a comment\n\n"
    'data: {"text":"Grüße 世界 👋"}\n\n'
    "data:no space\n\n"
    "event: delta\nid: 4\nretry: 10\ndata: first\ndata: second\n\n"
    ": ping\n\n\n\n"
    "data\n\n"
    "data: [DONE]\n\n"
)
EVENTS = [
    Event('{"text":"Grüße 世界 👋"}'.encode()),
    Event(b"no space"),
    Event(b"first\nsecond", "delta"),
    Event(b""),
    Event(b"[DONE]"),
]


def read(*pieces: bytes) -> list[Event]:
    parser = EventParser()
    found = [event for piece in pieces for event in parser.feed(piece)]
    return [*found, *parser.finish()]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_a_stream_cut_at_every_byte_reads_the_same(line_end: str) -> None:
    raw = STREAM.replace("\n", line_end).encode()

    assert read(raw) == EVENTS
    for cut in range(len(raw) + 1):
        assert read(raw[:cut], raw[cut:]) == EVENTS, cut
    assert read(*(raw[index : index + 1] for index in range(len(raw)))) == EVENTS


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_an_event_is_given_as_soon_as_it_is_whole(line_end: str) -> None:
    assert EventParser().feed(f"data: now{line_end}{line_end}".encode()) == [Event(b"now")]


def test_an_event_without_its_blank_line_is_not_lost() -> None:
    assert read(b"data: [DONE]") == [Event(b"[DONE]")]


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)

    with pytest.raises(EventTooLargeError):
        read(b"data: " + 200 * b"x")


@given(st.lists(st.binary(max_size=40)))
def test_no_bytes_break_the_parser(pieces: list[bytes]) -> None:
    read(*pieces)


@given(
    texts=st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), max_size=5),
    cut=st.integers(min_value=0, max_value=200),
)
def test_what_is_written_is_read(texts: list[str], cut: int) -> None:
    raw = b"".join(event_of(text.encode()) for text in texts)

    assert read(raw[:cut], raw[cut:]) == [Event(text.encode()) for text in texts]

"""What an adapter must be able to do: put a request to one kind of server, and read its answer.

Adapters do no I/O. The relay sends what `request_for` gives and feeds back what comes; so each is
a translation that tests can call, and a new kind of server is one module that obeys this contract.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from apps.core.errors import InferAdminError
from apps.gateway.orders import Endpoint, Format, Order
from apps.gateway.snapshot import TargetRow
from apps.gateway.sse import Event
from apps.gateway.usage import Usage


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A POST of JSON to a model server; headers may hold its secret."""

    url: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer and what it used; `usage` stands in the body, too.

    `format` is "openai" unless the server's own answer is passed on to a client that speaks the
    same. `headers` belong to the format, `content-type` among them where it is not JSON.
    """

    body: bytes = field(repr=False)
    usage: Usage
    format: Format = "openai"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a stream (JSON) in its reader's format, for the client to see.

    `event` is the name of its event in formats that name them.

    `has_content` is False for chunks that only open the answer: after them another target may
    still be tried, as long as nothing has been sent.
    """

    data: bytes = field(repr=False)
    has_content: bool
    event: str = ""


class StreamReader(Protocol):
    """Reads the events of one stream. Made for each try of a target."""

    # Format of the chunks: "openai", or that of `order.native` when it is passed on.
    format: Format
    # The server has said that it is done: what goes wrong afterwards does no harm.
    is_finished: bool
    # The protocol has no such word: a stream that something was read from ends when it is closed.
    ends_by_closing: bool

    def take(self, event: Event) -> list[Chunk]:
        """Chunks for the client out of one event of the server.

        Raises UpstreamError for an error inside the stream, UpstreamProtocolError for nonsense.
        """

    def end(self) -> list[Chunk]:
        """Chunks that are still owed when the stream has ended well."""

    def usage(self) -> Usage:
        """What was used so far: the server's count, else an estimate that says so."""


class Adapter(Protocol):
    """One dialect of model servers."""

    endpoints: frozenset[Endpoint]

    def request_for(self, order: Order, target: TargetRow) -> UpstreamRequest:
        """The order in the server's words. Raises InvalidRequestError for what it cannot do."""

    def answer_of(self, order: Order, target: TargetRow, body: bytes) -> Answer:
        """The whole answer out of the body of a 200. Raises UpstreamError."""

    def reader_for(self, order: Order, target: TargetRow) -> StreamReader:
        """A reader for a 200 that streams."""

    def failure_of(
        self, target: TargetRow, status: int, body: bytes, retry_after_seconds: float | None
    ) -> InferAdminError:
        """The error that a status other than 200 stands for."""

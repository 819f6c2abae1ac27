"""What a front must be able to do: understand requests of one client format, and write answers.

A front does no I/O. It turns a request into an Order in OpenAI's terms (`order.native` keeps the
client's own), and what adapters give back into what the client reads. Answers and chunks that are
in the client's own format already are passed on as they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from apps.core.errors import InferAdminError
from apps.gateway.adapters.contract import Answer, Chunk
from apps.gateway.orders import Format, Order


class Presenter(Protocol):
    """Writes the events of one stream."""

    def take(self, chunks: Sequence[Chunk]) -> bytes:
        """Events for the client out of chunks; b"" when there is nothing to say yet."""

    def end(self) -> bytes:
        """The last events of a stream that has ended well."""

    def fail(self, error: InferAdminError) -> bytes:
        """The last events of a stream that broke off."""


class Front(Protocol):
    """One format, at one endpoint."""

    def order_of(self, body: Any, headers: Mapping[str, str]) -> Order:
        """Understand a request; header names in lower case.

        Raises InvalidRequestError naming the field.
        """

    def whole(self, order: Order, answer: Answer) -> bytes:
        """The body of an answer."""

    def presenter(self, order: Order, chunk_format: Format) -> Presenter:
        """A writer for a stream whose chunks come in that format."""

    def error(self, error: InferAdminError) -> Mapping[str, Any]:
        """The body of an error."""

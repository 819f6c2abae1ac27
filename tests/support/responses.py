"""Reading streamed answers in tests."""

from typing import cast

from django.http import StreamingHttpResponse


async def async_body(response: object) -> str:
    """The whole text of an answer that the asynchronous client streams."""
    stream = cast(StreamingHttpResponse, response)
    return b"".join([chunk async for chunk in stream]).decode()

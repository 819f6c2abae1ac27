"""JSON bodies; what would only fall over later is refused as it comes in."""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser


class BodyTooLarge(APIException):
    """The body is longer than `INFERADMIN_MAX_BODY_BYTES`."""

    status_code = 413


class StrictJSONParser(JSONParser):
    """DRF's parser, bounded in length and depth, and without halves of characters.

    A lone surrogate passes Python's JSON reader, but cannot be written into any answer that
    quotes it. Raises BodyTooLarge and ParseError.
    """

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = _body_of(stream)
        try:
            parsed = super().parse(BytesIO(body), media_type, parser_context)
            json.dumps(parsed, ensure_ascii=False).encode()
        except RecursionError as exc:
            raise ParseError("the body is nested too deeply") from exc
        except UnicodeEncodeError as exc:
            raise ParseError("the body holds half of a character (a lone surrogate)") from exc
        return parsed


def _body_of(stream: IO[Any]) -> bytes:
    limit: int = settings.MAX_BODY_BYTES
    body: bytes = stream.read(limit + 1)
    if len(body) > limit:
        raise BodyTooLarge(f"the body is larger than {limit} bytes")
    return body

"""What list pages share: pages of rows, and the same rows as CSV."""

import csv
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.paginator import Page, Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, StreamingHttpResponse

M = TypeVar("M", bound=Model)

PAGE_SIZES = (25, 50, 100, 200)
DEFAULT_PAGE_SIZE = 50
# A cell that starts with one of these is taken for a formula by spreadsheet programs.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

CsvRow = Sequence[object]
# The rows of one block, and what to ask for the next one with; None after the last.
Block = tuple[Iterable[CsvRow], object | None]


def page_size_of(request: HttpRequest) -> int:
    """Rows a page from `?page_size=`; anything but one of PAGE_SIZES is the default."""
    asked = request.GET.get("page_size", "")
    return int(asked) if asked in map(str, PAGE_SIZES) else DEFAULT_PAGE_SIZE


def page_of(request: HttpRequest, rows: QuerySet[M]) -> Page[M]:
    """The page that `?page=` and `?page_size=` ask for; the nearest one when it is out of range."""
    return Paginator(rows, page_size_of(request)).get_page(request.GET.get("page"))


def csv_response(
    request: HttpRequest,
    *,
    name: str,
    header: CsvRow,
    next_block: Callable[[object | None], Block],
) -> StreamingHttpResponse:
    """A download `name`.csv that holds one block of rows in memory at a time.

    `next_block` is first called with `None`, then with what it returned beside the last block.
    It runs in the request's database thread; no cursor stays open between blocks.
    """
    blocks = (
        _texts_async(header, next_block)
        if isinstance(request, ASGIRequest)
        else _texts(header, next_block)
    )
    response = StreamingHttpResponse(blocks, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response["Cache-Control"] = "no-store"
    return response


def _texts(header: CsvRow, next_block: Callable[[object | None], Block]) -> Iterator[str]:
    yield _lines([header])
    rows, after = next_block(None)
    yield _lines(rows)
    while after is not None:
        rows, after = next_block(after)
        yield _lines(rows)


async def _texts_async(
    header: CsvRow, next_block: Callable[[object | None], Block]
) -> AsyncIterator[str]:
    """The same as `_texts`; under ASGI Django would collect a plain iterator into a list."""
    texts = _texts(header, next_block)
    following = sync_to_async(lambda: next(texts, None))
    while (text := await following()) is not None:
        yield text


def _lines(rows: Iterable[CsvRow]) -> str:
    buffer = StringIO()
    csv.writer(buffer).writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value

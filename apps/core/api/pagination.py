"""Pages of lists."""

import re

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination, PageNumberPagination
from rest_framework.request import Request

_WHOLE_NUMBER = re.compile(r"[1-9][0-9]{0,5}")


def _check_size(request: Request) -> None:
    """DRF takes a `page_size` that it cannot read for none at all; here it is an error."""
    asked = request.query_params.get("page_size")
    if asked and not _WHOLE_NUMBER.fullmatch(asked):
        raise ValidationError({"page_size": ["must be a whole number from 1 to 500"]})


class PageNumbers(PageNumberPagination):
    """`?page=2&page_size=100`: 50 a page unless asked, 500 at most."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500

    def get_page_size(self, request: Request) -> int | None:
        _check_size(request)
        return super().get_page_size(request)


class NewestFirst(CursorPagination):
    """Keyset pages for tables that only grow, by `at`; subclasses say by what else."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500
    ordering = ("-at", "-id")

    def get_page_size(self, request: Request) -> int | None:
        _check_size(request)
        return super().get_page_size(request)

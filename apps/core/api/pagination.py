"""Pages of lists."""

from rest_framework.pagination import CursorPagination, PageNumberPagination


class PageNumbers(PageNumberPagination):
    """`?page=2&page_size=100`: 50 a page unless asked, 500 at most."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500


class NewestFirst(CursorPagination):
    """Keyset pages for tables that only grow, by `at`; subclasses say by what else."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500
    ordering = ("-at", "-id")

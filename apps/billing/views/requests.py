"""Console pages of the request log."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from apps.billing import request_log
from apps.billing.explain import cost_derivation
from apps.billing.forms import RequestFilters
from apps.billing.journey import steps_of
from apps.billing.models import UsageRecord
from apps.billing.request_log import LogPage, Position
from apps.core.edges import requires
from apps.core.lists import PAGE_SIZES, Block, CsvRow, csv_response, page_size_of
from apps.core.money import plain
from apps.core.roles import Permission

_CSV_BLOCK = 2000
_CSV_HEADER = (
    "at", "id", "request_id", "endpoint", "status", "http_status", "error_code", "team", "key",
    "route", "server", "upstream_model", "version", "input_tokens", "cached_input_tokens",
    "cache_write_tokens", "output_tokens", "reasoning_tokens", "images", "is_estimated", "cost",
    "currency", "duration_seconds", "first_token_seconds", "attempts",
)  # fmt: skip


@require_GET
@requires(Permission.VIEW)
def request_list(request: HttpRequest) -> HttpResponse:
    """The log, newest first, narrowed by what the query string says."""
    filters = RequestFilters(request.GET, queryset=request_log.records_for_display())
    page = _page(request, filters)
    context = {
        "filters": filters,
        "page": page,
        "page_sizes": PAGE_SIZES,
        "page_size": page_size_of(request),
        "query": _filters_only(request.GET),
        "key": filters.form.cleaned_data.get("key") if filters.is_valid() else None,
    }
    return render(request, "billing/request_list.html", context)


def _page(request: HttpRequest, filters: RequestFilters) -> LogPage:
    size = page_size_of(request)
    newer = Position.parse(request.GET.get("newer"))
    if newer is not None:
        return request_log.page_newer(filters.matching, position=newer, size=size)
    older = Position.parse(request.GET.get("older"))
    return request_log.page_older(filters.matching, position=older, size=size)


def _filters_only(query: QueryDict) -> str:
    """The query string without the place in the log, to hang another place on."""
    kept = query.copy()
    for name in ("older", "newer"):
        kept.pop(name, None)
    return kept.urlencode()


@require_GET
@requires(Permission.VIEW)
def request_news(request: HttpRequest) -> HttpResponse:
    """How many requests came since `?newest=`, as a link to the first page; polled."""
    filters = RequestFilters(request.GET, queryset=UsageRecord.objects.all())
    newest = Position.parse(request.GET.get("newest"))
    if newest is None:
        count = filters.matching.order_by()[: request_log.MOST_COUNTED].count()
    else:
        count = request_log.newer_count(filters.matching, newest)
    query = request.GET.copy()
    query.pop("newest", None)
    context = {"count": count, "most": request_log.MOST_COUNTED, "query": query.urlencode()}
    return render(request, "billing/_request_news.html", context)


@require_GET
@requires(Permission.VIEW)
def request_export(request: HttpRequest) -> HttpResponseBase:
    """The narrowed log as CSV, however long, two thousand rows in memory at a time."""
    filters = RequestFilters(request.GET, queryset=request_log.records_for_display())
    records = filters.matching

    def next_block(after: object | None) -> Block:
        position = after if isinstance(after, Position) else None
        page = request_log.page_older(records, position=position, size=_CSV_BLOCK)
        return [_csv_row(record) for record in page.records], page.older

    return csv_response(request, name="requests", header=_CSV_HEADER, next_block=next_block)


def _csv_row(record: UsageRecord) -> CsvRow:
    cost = None if record.cost is None else plain(record.cost)
    return (
        record.at.isoformat(), record.pk, record.request_id, record.endpoint, record.status,
        record.http_status, record.error_code, record.team.name, record.key.name,
        record.route_name, record.server_name, record.upstream_model, record.version,
        record.input_tokens, record.cached_input_tokens, record.cache_write_tokens,
        record.output_tokens, record.reasoning_tokens, record.images, record.is_estimated,
        cost, record.currency, record.duration_seconds, record.first_token_seconds,
        len(record.attempts),
    )  # fmt: skip


@require_GET
@requires(Permission.VIEW)
def request_detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Explains one request: how it ended, where it went and why, what it cost and why."""
    record = get_object_or_404(request_log.records_for_display().select_related("price"), pk=pk)
    context = {
        "record": record,
        "derivation": cost_derivation(record),
        "steps": steps_of(record),
    }
    return render(request, "billing/request_detail.html", context)


@require_GET
@requires(Permission.VIEW)
def request_lookup(request: HttpRequest) -> JsonResponse:
    """The record of `?request_id=` in short, for who has just sent the request.

    `found` is false while the ledger has not written it yet: ask again a little later.
    """
    record = request_log.record_of(request.GET.get("request_id", ""))
    if record is None:
        return JsonResponse({"found": False})
    cost = None if record.cost is None else plain(record.cost)
    return JsonResponse(
        {
            "found": True,
            "url": reverse("billing:request-detail", args=[record.pk]),
            "status": record.status,
            "status_label": str(record.get_status_display()),
            "server": record.server_name,
            "upstream_model": record.upstream_model,
            "version": record.version,
            "attempts": len(record.attempts),
            "input_tokens": record.input_tokens,
            "output_tokens": record.output_tokens,
            "is_estimated": record.is_estimated,
            "cost": cost,
            "currency": record.currency,
            "duration_seconds": record.duration_seconds,
            "first_token_seconds": record.first_token_seconds,
        }
    )

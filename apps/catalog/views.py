"""Console pages of models. Where each is loaded comes from the fleet's pages, by URL."""

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.catalog import pages
from apps.catalog.models import ServedModel
from apps.core.audit import history_of
from apps.core.edges import requires
from apps.core.lists import Block, csv_response, page_of
from apps.core.roles import Permission


@require_GET
@requires(Permission.VIEW)
def model_list(request: HttpRequest) -> HttpResponse:
    """All models that any server knows."""
    sort = request.GET.get("sort", "name")
    filters = pages.ModelFilters(request.GET, queryset=pages.models_for_list(sort))
    context = {"filters": filters, "page": page_of(request, filters.qs), "sort": sort}
    return render(request, "catalog/model_list.html", context)


@require_GET
@requires(Permission.VIEW)
def model_export(request: HttpRequest) -> HttpResponseBase:
    """The narrowed list as CSV."""
    filters = pages.ModelFilters(request.GET, queryset=pages.models_for_list())

    def next_block(after: object | None) -> Block:
        del after
        return [_csv_row(model) for model in filters.qs], None

    header = ("model", "kind", "versions", "newest_version", "description", "created_at")
    return csv_response(request, name="models", header=header, next_block=next_block)


def _csv_row(model: ServedModel) -> tuple[object, ...]:
    counts = vars(model)
    return (
        model.name,
        model.kind,
        counts["version_count"],
        counts["newest_version"],
        model.description,
        model.created_at.isoformat(),
    )


@require_GET
@requires(Permission.VIEW)
def model_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One model: its versions, where it is loaded, operations, history."""
    model = pages.model_for_page(pk)
    context = {
        "model": model,
        "versions": model.versions.order_by("-number"),
        "history": history_of(model),
    }
    return render(request, "catalog/model_detail.html", context)

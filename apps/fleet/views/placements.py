"""Rows of repository tables, the buttons in them, and parts of the models' pages."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.core.edges import actor_of, requires
from apps.core.notices import toast
from apps.core.roles import Permission
from apps.fleet import pages, selectors
from apps.fleet.services import operations

_OPERATIONS_SHOWN = 50


@require_GET
@requires(Permission.VIEW)
def placement_row(request: HttpRequest, pk: int) -> HttpResponse:
    """One row of a repository table, as open pages fetch it when it has changed."""
    return _row(request, pk)


def _row(request: HttpRequest, pk: int) -> HttpResponse:
    by = "server" if request.GET.get("by") == "server" else "model"
    context = {"placement": selectors.placement_get(pk), "by": by}
    return render(request, "fleet/_placement.html", context)


@require_POST
@requires(Permission.OPERATE)
def operation_request(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for a load, unload or reload (`kind`); the row shows how it goes on."""
    kind = request.POST.get("kind", "")
    operation = operations.operation_request(actor=actor_of(request), placement_id=pk, kind=kind)
    text = _("%(kind)s of %(what)s is on its way.") % {
        "kind": operation.get_kind_display(),
        "what": operation.placement,
    }
    if request.headers.get("HX-Request"):
        return toast(_row(request, pk), text)
    messages.success(request, text)
    return redirect("fleet:server-detail", operation.placement.server_id)


@require_GET
@requires(Permission.VIEW)
def model_states(request: HttpRequest) -> HttpResponse:
    """Where each of `?model=1&model=2` stands: spans for the list of models."""
    ids = [int(pk) for pk in request.GET.getlist("model")[:200] if pk.isdecimal()]
    placed = pages.models_placed(ids)
    rows = [(pk, placed.get(pk, [])) for pk in ids]
    return render(request, "fleet/_model_states.html", {"rows": rows})


@require_GET
@requires(Permission.VIEW)
def model_placements(request: HttpRequest, pk: int) -> HttpResponse:
    """The servers that know a model, with buttons: a part of the model's page."""
    found = selectors.placements_with_operations().filter(model_id=pk)
    context = {"placements": found, "by": "server"}
    return render(request, "fleet/_model_placements.html", context)


@require_GET
@requires(Permission.VIEW)
def model_operations(request: HttpRequest, pk: int) -> HttpResponse:
    """The newest operations on a model: a part of the model's page."""
    found = selectors.operations_of(model_id=pk)[:_OPERATIONS_SHOWN]
    return render(request, "fleet/_operations.html", {"operations": found})

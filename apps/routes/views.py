"""Console pages of routes."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.core.audit import history_of
from apps.core.edges import actor_of, requires
from apps.core.errors import ConflictError, InvalidRequestError
from apps.core.lists import PAGE_SIZES, Block, csv_response, page_of, page_size_of
from apps.core.roles import Permission
from apps.routes import selectors, services
from apps.routes.forms import (
    TIMEOUTS,
    RouteFilters,
    RouteForm,
    Targets,
    targets_formset,
    with_another_target,
)
from apps.routes.health import routes_health
from apps.routes.kinds import route_kinds
from apps.routes.models import Route, Target
from apps.routes.suggestion import suggested_target

_ADD_TARGET = "add_target"


@require_GET
@requires(Permission.VIEW)
def route_list(request: HttpRequest) -> HttpResponse:
    """All routes with where they lead, how that is, and what they did today."""
    filters = RouteFilters(request.GET, queryset=selectors.routes_with_targets())
    page = page_of(request, filters.qs)
    context = {
        "filters": filters,
        "sort": request.GET.get("sort", ""),
        "page": page,
        "rows": routes_health(page.object_list),
        "page_sizes": PAGE_SIZES,
        "page_size": page_size_of(request),
    }
    return render(request, "routes/route_list.html", context)


@require_GET
@requires(Permission.VIEW)
def route_export(request: HttpRequest) -> HttpResponseBase:
    """The narrowed list as CSV, one line a target."""
    filters = RouteFilters(request.GET, queryset=selectors.routes_with_targets())

    def next_block(after: object | None) -> Block:
        del after
        return [_csv_row(target) for route in filters.qs for target in route.targets.all()], None

    header = ("route", "enabled", "data_class", "tier", "weight", "server", "upstream_model",
              "version", "protocol", "target_enabled")  # fmt: skip
    return csv_response(request, name="routes", header=header, next_block=next_block)


def _csv_row(target: Target) -> tuple[object, ...]:
    route = target.route
    return (
        route.name, route.is_enabled, route.data_class, target.tier, target.weight,
        target.server.name, target.upstream_model, target.version, target.protocol,
        target.is_enabled,
    )  # fmt: skip


@require_GET
@requires(Permission.VIEW)
def route_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One route: targets and how they are, policy, how to call it, history."""
    route = selectors.route_get(pk)
    context = {
        "route": route,
        "health": routes_health([route])[0],
        "timeouts": _timeouts(route),
        "kind": route_kinds([route])[pk],
        "base_url": request.build_absolute_uri("/v1"),
        "history": history_of(route),
    }
    return render(request, "routes/route_detail.html", context)


def _timeouts(route: Route) -> list[tuple[str, int | None, int]]:
    """Label, the route's own seconds (`None` where it has none) and the installation's default."""
    labels = RouteForm.base_fields
    return [
        (
            str(labels[name].label),
            getattr(route, name),
            getattr(settings, f"GATEWAY_{name.upper()}"),
        )
        for name in TIMEOUTS
    ]


@require_http_methods(["GET", "POST"])
@requires(Permission.OPERATE)
def route_create(request: HttpRequest) -> HttpResponse:
    """Make a route; `?model=…&server=…` fills in the first target (“expose as route”)."""
    if request.method == "POST":
        return _save(request, route=None)
    model_name = request.GET.get("model", "")
    first = suggested_target(model_name=model_name, server_name=request.GET.get("server", ""))
    form = RouteForm(initial={"name": model_name})
    targets = targets_formset(extra=0 if first else 1)(
        initial=[first] if first else [], prefix="targets"
    )
    return _edit_page(request, form, targets, route=None)


@require_http_methods(["GET", "POST"])
@requires(Permission.OPERATE)
def route_edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a route and its targets."""
    route = selectors.route_get(pk)
    if request.method == "POST":
        return _save(request, route=route)
    initial = [_target_initial(target) for target in route.targets.all()]
    targets = targets_formset(extra=0 if initial else 1)(initial=initial, prefix="targets")
    return _edit_page(request, RouteForm(instance=route), targets, route=route)


def _target_initial(target: Target) -> dict[str, Any]:
    return {
        "server": target.server_id,
        "upstream_model": target.upstream_model,
        "version": target.version,
        "protocol": target.protocol,
        "tier": target.tier,
        "weight": target.weight,
        "is_enabled": target.is_enabled,
    }


def _edit_page(
    request: HttpRequest, form: RouteForm, targets: Targets, *, route: Route | None
) -> HttpResponse:
    context = {"form": form, "targets": targets, "route": route}
    status = 400 if form.is_bound else 200
    return render(request, "routes/route_form.html", context, status=status)


def _save(request: HttpRequest, *, route: Route | None) -> HttpResponse:
    """Save and go to the route; what is wrong is said at its field."""
    if _ADD_TARGET in request.POST:
        form, targets = with_another_target(request.POST)
        return _edit_page(request, form, targets, route=route)
    # The form works on its own copy of the row, so that a refused name does not show as the title.
    instance = Route.objects.get(pk=route.pk) if route else None
    form = RouteForm(request.POST, instance=instance)
    targets = targets_formset(extra=0)(request.POST, prefix="targets")
    if not (form.is_valid() & targets.is_valid()):
        return _edit_page(request, form, targets, route=route)
    try:
        saved = _write(request, form, targets, route)
    except (InvalidRequestError, ConflictError) as exc:
        _show_refusal(form, targets, exc)
        return _edit_page(request, form, targets, route=route)
    messages.success(request, _("Route %(name)s is saved.") % {"name": saved.name})
    return redirect("routes:route-detail", saved.pk)


def _write(request: HttpRequest, form: RouteForm, targets: Targets, route: Route | None) -> Route:
    values = {**form.cleaned_data, "targets": targets.values}
    if route is None:
        return services.route_create(actor=actor_of(request), **values)
    return services.route_update(actor=actor_of(request), route_id=route.pk, **values)


def _show_refusal(
    form: RouteForm, targets: Targets, error: InvalidRequestError | ConflictError
) -> None:
    """Put what a service refused to its field, or above the form."""
    fields = error.fields if isinstance(error, InvalidRequestError) else {}
    for name, problems in fields.items():
        if name in form.fields:
            form.add_error(name, problems)
        else:
            targets.add_problems(name, problems)
    if not fields:
        form.add_error("name" if isinstance(error, ConflictError) else None, error.message)


@require_POST
@requires(Permission.OPERATE)
def route_switch(request: HttpRequest, pk: int) -> HttpResponseRedirect:
    """Enable or disable a route: `enabled` is `true` or `false`."""
    wanted = request.POST.get("enabled") == "true"
    route = services.route_update(actor=actor_of(request), route_id=pk, is_enabled=wanted)
    text = _("Route %(name)s is enabled.") if wanted else _("Route %(name)s is disabled.")
    messages.success(request, text % {"name": route.name})
    return redirect("routes:route-detail", pk)


@require_http_methods(["GET", "POST"])
@requires(Permission.OPERATE)
def route_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, naming what stops; then delete."""
    route = selectors.route_get(pk)
    if request.method == "GET":
        return render(request, "routes/route_delete.html", {"route": route})
    services.route_delete(actor=actor_of(request), route_id=pk)
    messages.success(request, _("Route %(name)s is deleted.") % {"name": route.name})
    return redirect("routes:route-list")

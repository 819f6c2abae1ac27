"""Asking before an unload: which routes lose the model, and where their requests go then."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.core.edges import requires
from apps.core.roles import Permission
from apps.fleet import selectors as fleet
from apps.fleet.models import Placement
from apps.routes import selectors as routes
from apps.routes.health import RouteHealth, TargetHealth, routes_health
from apps.routes.models import Route


@dataclass(frozen=True, slots=True)
class Loss:
    """A route that sends requests to the placement; `others`: targets that can take over now."""

    route: Route
    others: list[TargetHealth]


@require_GET
@requires(Permission.OPERATE)
def placement_unload(request: HttpRequest, pk: int) -> HttpResponse:
    """The question as a page, or as the content of a dialog."""
    placement = fleet.placement_get(pk)
    is_part = bool(request.headers.get("HX-Request"))
    context = {
        "placement": placement,
        "losses": _losses(placement),
        "by": "server" if request.GET.get("by") == "server" else "model",
        "is_part": is_part,
    }
    template = "console/_unload_form.html" if is_part else "console/unload.html"
    return render(request, template, context)


def _losses(placement: Placement) -> list[Loss]:
    affected = routes.routes_with_targets().filter(
        pk__in=Route.objects.filter(
            is_enabled=True,
            targets__is_enabled=True,
            targets__weight__gt=0,
            targets__server_id=placement.server_id,
            targets__upstream_model=placement.model.name,
        ).values("pk")
    )
    return [Loss(health.route, _others(health, placement)) for health in routes_health(affected)]


def _others(health: RouteHealth, placement: Placement) -> list[TargetHealth]:
    here = (placement.server_id, placement.model.name)
    return [
        target
        for tier in health.tiers
        for target in tier.targets
        if target.takes_traffic and (target.target.server_id, target.target.upstream_model) != here
    ]

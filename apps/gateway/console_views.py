"""The playground: a page whose script calls `/v1` as any client does, with a key of its own."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.catalog.models import ServedModel
from apps.core.edges import actor_of, requires
from apps.core.roles import Permission
from apps.keys import services as key_services
from apps.routes import selectors as route_selectors
from apps.routes.kinds import route_kinds
from apps.routes.models import Route


@require_GET
@requires(Permission.OPERATE)
def playground(request: HttpRequest) -> HttpResponse:
    """Chat through a route, or look at an embedding; `?route=` chooses one."""
    routes = [route for route in route_selectors.routes_with_targets() if route.is_enabled]
    kinds = route_kinds(routes)
    context = {
        "routes": [(route, kinds[route.pk]) for route in routes],
        "chosen": request.GET.get("route") or _talking(routes, kinds),
        "config": {
            "keyUrl": reverse("gateway:playground-key"),
            "lookupUrl": reverse("billing:request-lookup"),
            "apiUrl": request.build_absolute_uri("/v1"),
            "texts": _texts(),
        },
    }
    return render(request, "gateway/playground.html", context)


@never_cache
@require_POST
@requires(Permission.OPERATE)
def playground_key(request: HttpRequest) -> JsonResponse:
    """A key of one hour for the person's own playground; the page keeps it in memory only."""
    return JsonResponse({"key": key_services.playground_key_issue(actor=actor_of(request))})


def _talking(routes: list[Route], kinds: dict[int, str]) -> str:
    """Name of the first route that can chat; empty when none can."""
    talking = (route.name for route in routes if kinds[route.pk] == ServedModel.Kind.LLM)
    return next(talking, "")


def _texts() -> dict[str, str]:
    """What the script says, in the reader's language."""
    return {
        "copied": _("Copied"),
        "waiting": _("Waiting for the first token…"),
        "stopped": _("Stopped"),
        "noAnswer": _("The model answered nothing."),
        "unreachable": _("The gateway cannot be reached. Check that it runs, then send again."),
        "keyRefused": _("No playground key could be made. Sign in again."),
        "cutOff": _("The answer was cut off before its end."),
        "unpriced": _("no price"),
        "estimated": _("estimated"),
        "notRecorded": _("not in the ledger yet"),
        "seconds": _("s"),
        "tokensPerSecond": _("tokens/s"),
        "dimensions": _("dimensions"),
        "attempts": _("attempts"),
    }

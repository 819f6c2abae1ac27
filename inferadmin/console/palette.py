"""What the palette (Ctrl K) finds: servers, models, routes, keys, teams, a request by its id."""

from collections.abc import Callable
from typing import TypedDict
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from apps.catalog.models import ServedModel
from apps.core.edges import requires
from apps.core.roles import Permission
from apps.fleet.models import Server
from apps.keys.models import ApiKey, Team
from apps.routes.models import Route

_EACH = 5
_LONGEST = 100


class Place(TypedDict):
    """Something to go to; `icon` is the name of a Lucide icon."""

    label: str
    note: str
    url: str
    icon: str


@require_GET
@requires(Permission.VIEW)
def search(request: HttpRequest) -> JsonResponse:
    """`?q=` as `{"places": […]}`, at most five of each kind, by name."""
    typed = request.GET.get("q", "").replace("\0", "").strip()[:_LONGEST]
    finders: tuple[Callable[[str], list[Place]], ...] = (
        _requests, _servers, _models, _routes, _keys, _teams,
    )  # fmt: skip
    places = [place for find in finders for place in find(typed)] if typed else []
    return JsonResponse({"places": places}, headers={"Cache-Control": "no-store"})


def _place(label: str, note: str, url_name: str, pk: object, *, icon: str) -> Place:
    return Place(label=label, note=note, url=reverse(url_name, args=[pk]), icon=icon)


def _requests(typed: str) -> list[Place]:
    try:
        pk = UUID(typed)
    except ValueError:
        return []
    return [_place(str(pk), _("request"), "billing:request-detail", pk, icon="scroll-text")]


def _servers(typed: str) -> list[Place]:
    return [
        _place(row.name, row.get_kind_display(), "fleet:server-detail", row.pk, icon="server")
        for row in Server.objects.filter(name__icontains=typed)[:_EACH]
    ]


def _models(typed: str) -> list[Place]:
    return [
        _place(row.name, row.get_kind_display(), "catalog:model-detail", row.pk, icon="boxes")
        for row in ServedModel.objects.filter(name__icontains=typed)[:_EACH]
    ]


def _routes(typed: str) -> list[Place]:
    return [
        _place(row.name, _("route"), "routes:route-detail", row.pk, icon="route")
        for row in Route.objects.filter(name__icontains=typed)[:_EACH]
    ]


def _keys(typed: str) -> list[Place]:
    found = ApiKey.objects.filter(name__icontains=typed).select_related("team")
    return [
        _place(row.name, row.team.name, "keys:key-detail", row.pk, icon="key-round")
        for row in found[:_EACH]
    ]


def _teams(typed: str) -> list[Place]:
    return [
        _place(row.name, _("team"), "keys:team-detail", row.pk, icon="users")
        for row in Team.objects.filter(name__icontains=typed)[:_EACH]
    ]

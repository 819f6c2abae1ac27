"""What the fleet's console pages show, put together from the selectors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import django_filters
from django import forms
from django.db.models import Count, QuerySet
from django.utils.translation import gettext_lazy as _

from apps.core.errors import NotFoundError
from apps.fleet import selectors
from apps.fleet.models import Placement, Server

_SERVER_SORTS = {
    "name": ("name",),
    "state": ("state", "name"),
    "kind": ("kind", "name"),
    "seen": ("last_seen_at", "name"),
}


class ServerFilters(django_filters.FilterSet):
    """What the list of servers can be narrowed by."""

    q = django_filters.CharFilter(
        field_name="name",
        lookup_expr="icontains",
        label=_("Search"),
        widget=forms.TextInput(attrs={"placeholder": _("Search by name")}),
    )
    state = django_filters.ChoiceFilter(
        choices=Server.State, label=_("State"), empty_label=_("Any state")
    )
    kind = django_filters.ChoiceFilter(
        choices=Server.Kind, label=_("Kind"), empty_label=_("Any kind")
    )

    class Meta:
        model = Server
        fields: list[str] = []


def servers_for_list(sort: str = "name") -> QuerySet[Server]:
    """Servers with their counts and `gpu_count`; "-name" turns the order of "name" round."""
    names = _SERVER_SORTS.get(sort.removeprefix("-"), _SERVER_SORTS["name"])
    order = [f"-{name}" for name in names] if sort.startswith("-") else list(names)
    counted = selectors.servers_with_counts().annotate(gpu_count=Count("gpus", distinct=True))
    return counted.order_by(*order)


def server_for_page(pk: int) -> Server:
    """The server with its counts; raises NotFoundError."""
    server = servers_for_list().filter(pk=pk).first()
    if server is None:
        raise NotFoundError(f"there is no server {pk}")
    return server


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """A server and its placements by model name, each with its newest operation."""

    server: Server
    placements: list[Placement]


def fleet_groups(servers: Iterable[Server]) -> list[ServerGroup]:
    """One group a server, in the given order."""
    groups = {server.pk: ServerGroup(server, []) for server in servers}
    for placement in selectors.placements_with_operations().filter(server_id__in=groups):
        groups[placement.server_id].placements.append(placement)
    return list(groups.values())


def observed_counts() -> dict[str, int]:
    """How many placements are in each observed state; states without one are missing."""
    rows = Placement.objects.order_by("observed").values_list("observed").annotate(Count("pk"))
    return dict(rows)


def models_placed(model_ids: Sequence[int]) -> dict[int, list[Placement]]:
    """Placements of each of the models, by server name; a model without one is missing."""
    found: dict[int, list[Placement]] = {}
    rows = Placement.objects.select_related("server").filter(model_id__in=model_ids)
    for placement in rows.order_by("server__name"):
        found.setdefault(placement.model_id, []).append(placement)
    return found

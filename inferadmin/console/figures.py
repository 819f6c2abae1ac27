"""What servers and their placements do now, for the cells of tables that are open."""

from collections.abc import Iterable, Mapping
from time import time

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from apps.core.edges import requires
from apps.core.roles import Permission
from apps.fleet.models import Placement
from apps.metrics.figures import Figures
from apps.metrics.selectors import current

Values = dict[str, float | None]
_MOST_IDS = 200
_SHOWN = ("requests_per_second", "latency_mean_ms", "pending_requests")


@require_GET
@requires(Permission.VIEW)
def figures(request: HttpRequest) -> JsonResponse:
    """`?server=3&placement=12` as a tick of topic `figures`: `server:3/cpu_ratio`: value …"""
    values = {
        **_of_servers(_ids(request, "server")),
        **_of_placements(_ids(request, "placement")),
    }
    tick = {"type": "tick", "topic": "figures", "t": int(time()), "values": values}
    return JsonResponse(tick, headers={"Cache-Control": "no-store"})


def _ids(request: HttpRequest, name: str) -> list[int]:
    asked = request.GET.getlist(name)[:_MOST_IDS]
    return [int(text) for text in asked if text.isascii() and text.isdecimal() and len(text) < 19]


def _of_servers(ids: Iterable[int]) -> Values:
    known = current.server_figures() if ids else {}
    return {
        f"server:{pk}/{name}": value
        for pk in ids
        if pk in known
        for name, value in known[pk].values.items()
    }


def _of_placements(ids: Iterable[int]) -> Values:
    rows = Placement.objects.filter(pk__in=ids).select_related("model") if ids else []
    by_server: dict[int, list[Placement]] = {}
    for row in rows:
        by_server.setdefault(row.server_id, []).append(row)
    found: Values = {}
    for server_id, placements in by_server.items():
        known = current.placement_figures(server_id)
        for placement in placements:
            found.update(_values(placement, _versions(known, placement.model.name)))
    return found


def _versions(known: Mapping[current.Placed, Figures], model: str) -> list[Figures]:
    return [figures for (name, _version), figures in known.items() if name == model]


def _values(placement: Placement, versions: list[Figures]) -> Values:
    """The versions of a model taken together; {} when none is known."""
    if not versions:
        return {}
    together = {
        "requests_per_second": _sum(one.requests_per_second for one in versions),
        "latency_mean_ms": _mean(versions),
        "pending_requests": _sum(one.pending_requests for one in versions),
    }
    return {f"placement:{placement.pk}/{name}": together[name] for name in _SHOWN}


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(versions: list[Figures]) -> float | None:
    """Mean latency weighted by requests; `None` when no request has ended."""
    pairs = [
        (one.latency_mean_ms, one.requests_per_second)
        for one in versions
        if one.latency_mean_ms is not None and one.requests_per_second
    ]
    weight = sum(rate for _latency, rate in pairs)
    return sum(latency * rate for latency, rate in pairs) / weight if weight else None

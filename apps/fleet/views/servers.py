"""Console pages of servers: the list, and one server with its tabs."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from apps.core.audit import history_of
from apps.core.charts import Chart, Line
from apps.core.edges import requires
from apps.core.lists import Block, csv_response, page_of
from apps.core.roles import Permission
from apps.fleet import pages, selectors
from apps.fleet.models import Gpu, Server

_OPERATIONS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Tab:
    """A part of a detail page; `count` is `None` where there is nothing to count."""

    name: str
    label: str
    count: int | None = None
    is_current: bool = False

    @property
    def url(self) -> str:
        return f"?tab={self.name}"


@require_GET
@requires(Permission.VIEW)
def server_list(request: HttpRequest) -> HttpResponse:
    """All servers: state, what is ready, what they do now."""
    sort = request.GET.get("sort", "name")
    filters = pages.ServerFilters(request.GET, queryset=pages.servers_for_list(sort))
    context = {"filters": filters, "page": page_of(request, filters.qs), "sort": sort}
    return render(request, "fleet/server_list.html", context)


@require_GET
@requires(Permission.VIEW)
def server_export(request: HttpRequest) -> HttpResponseBase:
    """The narrowed list as CSV."""
    filters = pages.ServerFilters(request.GET, queryset=pages.servers_for_list())

    def next_block(after: object | None) -> Block:
        del after
        return [_csv_row(server) for server in filters.qs], None

    header = ("server", "kind", "state", "since", "url", "external", "enabled", "ready", "models",
              "gpus", "engine_version", "last_seen_at")  # fmt: skip
    return csv_response(request, name="servers", header=header, next_block=next_block)


def _csv_row(server: Server) -> tuple[object, ...]:
    counts = vars(server)
    return (
        server.name, server.kind, server.state, server.state_since.isoformat(), server.url,
        server.is_external, server.is_enabled, counts["ready_count"], counts["placement_count"],
        counts["gpu_count"], server.engine_version,
        server.last_seen_at.isoformat() if server.last_seen_at else "",
    )  # fmt: skip


@require_GET
@requires(Permission.VIEW)
def server_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One server: its repository, live charts, GPUs, operations and history, one a tab."""
    server = pages.server_for_page(pk)
    gpus = list(server.gpus.all())
    chosen = request.GET.get("tab", "repository")
    tabs = _tabs(server, gpus, chosen)
    tab = chosen if any(tab.name == chosen for tab in tabs) else "repository"
    context = {
        "server": server,
        "tabs": tabs,
        "tab": tab,
        "topic": f"server:{pk}",
        "by": "model",
        **_TAB_CONTEXTS[tab](server, gpus),
    }
    return render(request, "fleet/server_detail.html", context)


def _tabs(server: Server, gpus: Sequence[Gpu], chosen: str) -> list[Tab]:
    """The tabs that this server has; the first is current when `chosen` is none of them."""
    known = [("repository", _("Repository"), vars(server)["placement_count"])]
    if gpus:
        known.append(("gpus", _("GPUs"), len(gpus)))
    known += [("operations", _("Operations"), None), ("history", _("History"), None)]
    current = chosen if chosen in {name for name, *_rest in known} else "repository"
    return [Tab(name, label, count, name == current) for name, label, count in known]


def _repository(server: Server, gpus: Sequence[Gpu]) -> dict[str, object]:
    return {
        "placements": selectors.placements_of(server.pk),
        "charts": _server_charts(server, gpus),
    }


def _gpus(server: Server, gpus: Sequence[Gpu]) -> dict[str, object]:
    return {"gpus": gpus, "charts": _gpu_charts(server, gpus)}


def _operations(server: Server, gpus: Sequence[Gpu]) -> dict[str, object]:
    del gpus
    return {"operations": selectors.operations_of(server_id=server.pk)[:_OPERATIONS_SHOWN]}


def _history(server: Server, gpus: Sequence[Gpu]) -> dict[str, object]:
    del gpus
    return {"history": history_of(server)}


_TAB_CONTEXTS = {
    "repository": _repository,
    "gpus": _gpus,
    "operations": _operations,
    "history": _history,
}


def _server_charts(server: Server, gpus: Sequence[Gpu]) -> list[Chart]:
    topic = f"server:{server.pk}"
    return [
        Chart(
            _("Latency"), topic, "ms",
            [
                Line("latency_mean_ms", _("mean"), "p95"),
                Line("queue_mean_ms", _("of it in the queue"), "p50"),
            ],
        ),
        Chart(
            _("Throughput"), topic, "per_second",
            [
                Line("requests_per_second", _("requests"), "requests"),
                Line("failures_per_second", _("failures"), "p99"),
            ],
        ),
        Chart(_("Tokens"), topic, "per_second", [Line("tokens_per_second", _("tokens"), "p50")],
              is_optional=True),
        Chart(_("CPU"), topic, "ratio", [Line("cpu_ratio", _("load"), "load")], is_optional=True),
        Chart(
            _("Memory"), topic, "bytes",
            [Line("memory_used_bytes", _("used"), "memory")], is_optional=True,
        ),
        *_gpu_charts(server, gpus)[:1],
    ]  # fmt: skip


_GPU_COLORS = ("load", "p95", "memory", "requests", "p50", "p99")


def _gpu_charts(server: Server, gpus: Sequence[Gpu]) -> list[Chart]:
    """Load and memory, one line a GPU; nothing where the server reports none."""
    if not gpus:
        return []
    measures = [
        (_("GPU load"), "utilization_ratio", "ratio"),
        (_("GPU memory"), "memory_used_bytes", "bytes"),
        (_("GPU power"), "power_watts", "watts"),
    ]
    return [
        Chart(
            title,
            f"server:{server.pk}",
            unit,
            [
                Line(f"gpu/{gpu.uuid}/{metric}", str(index), _GPU_COLORS[index % len(_GPU_COLORS)])
                for index, gpu in enumerate(gpus)
            ],
            is_optional=metric == "power_watts",
        )
        for title, metric, unit in measures
    ]

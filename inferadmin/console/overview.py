"""The overview: is everything fine, what goes on, what changed lately."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from apps.billing import spend
from apps.core.charts import Chart, Line
from apps.core.edges import requires
from apps.core.models import AuditEntry
from apps.core.roles import Permission
from apps.fleet import pages, selectors
from apps.fleet.models import Gpu, Placement, Server
from apps.routes.models import Route

# Servers whose repositories the overview shows; the rest is a link away.
_SERVERS_SHOWN = 12
_EVENTS_SHOWN = 8

_Observed = Placement.Observed
# Chips above the fleet table: the states that each stands for.
_CHIPS = (
    ("ready", _Observed.READY),
    ("loading", _Observed.LOADING, _Observed.UNLOADING),
    ("unloaded", _Observed.UNLOADED, _Observed.ABSENT, _Observed.UNKNOWN),
    ("degraded", _Observed.DEGRADED, _Observed.STALLED),
    ("failed", _Observed.UNAVAILABLE),
)
_CHIP_TONES = {"ready": "ok", "loading": "info", "unloaded": "idle", "degraded": "warn"}


@dataclass(frozen=True, slots=True)
class Chip:
    """A group of states with how many placements are in it; `states` with spaces between."""

    label: str
    tone: str
    states: str
    count: int


@require_GET
@requires(Permission.VIEW)
def home(request: HttpRequest) -> HttpResponse:
    """The overview; without a server it says what comes first."""
    servers = list(pages.servers_for_list()[:_SERVERS_SHOWN])
    if not servers:
        return render(request, "home_empty.html")
    context = {
        "topic": "overview",
        "by": "model",
        "charts": _charts(),
        "groups": pages.fleet_groups(servers),
        "operations": selectors.operations_of()[:_EVENTS_SHOWN],
        "changes": AuditEntry.objects.all()[:_EVENTS_SHOWN],
        **_summary(),
    }
    return render(request, "home.html", context)


@require_GET
@requires(Permission.VIEW)
def summary(request: HttpRequest) -> HttpResponse:
    """Counts of the fleet, as the overview fetches them when a state has changed."""
    return render(request, "console/_summary.html", _summary())


def _summary() -> dict[str, object]:
    counts = pages.observed_counts()
    return {
        "server_count": Server.objects.count(),
        "servers_shown": _SERVERS_SHOWN,
        "gpu_count": Gpu.objects.count(),
        "route_count": Route.objects.filter(is_enabled=True).count(),
        "placement_count": sum(counts.values()),
        "ready_count": counts.get(_Observed.READY, 0),
        "chips": _chips(counts),
        "today": sum(spend.routes_used_on(spend.today()).values(), spend.Used()),
    }


def _chips(counts: dict[str, int]) -> list[Chip]:
    labels = {
        "ready": _("Ready"),
        "loading": _("Loading"),
        "unloaded": _("Unloaded"),
        "degraded": _("Degraded"),
        "failed": _("Failed"),
    }
    return [
        Chip(
            label=labels[name],
            tone=_CHIP_TONES.get(name, "bad"),
            states=" ".join(states),
            count=sum(counts.get(state, 0) for state in states),
        )
        for name, *states in _CHIPS
    ]


def _charts() -> list[Chart]:
    topic = "overview"
    return [
        Chart(
            _("Latency"),
            topic,
            "ms",
            [
                Line("latency_p99_ms", "p99", "p99"),
                Line("latency_p95_ms", "p95", "p95"),
                Line("latency_p50_ms", "p50", "p50"),
            ],
            note=_("all routes"),
        ),
        Chart(
            _("Throughput"),
            topic,
            "per_second",
            [Line("requests_per_second", _("requests"), "requests")],
            note=_("finished requests"),
        ),
        Chart(
            _("Load"),
            topic,
            "ratio",
            [
                Line("gpu_utilization_ratio", "GPU", "load"),
                Line("cpu_ratio", "CPU", "p50"),
            ],
            note=_("of all servers that report it"),
        ),
        Chart(
            _("Memory"),
            topic,
            "bytes",
            [
                Line("gpu_memory_used_bytes", "GPU", "memory"),
                Line("memory_used_bytes", _("host"), "p50"),
            ],
            note=_("in use"),
        ),
    ]

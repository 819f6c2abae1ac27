"""How a route's targets are: server state and ready versions, in words and by share of traffic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from apps.fleet.models import Placement, Server
from apps.routes.models import Route, Target

# Tones of the console's badges.
Tone = Literal["ok", "warn", "bad", "idle"]
Text = str | Promise
# Placements of Triton servers, by server id and model name.
Placements = Mapping[tuple[int, str], Placement]

_SERVER_TONES: dict[str, Tone] = {
    Server.State.ONLINE: "ok",
    Server.State.DEGRADED: "warn",
    Server.State.UNREACHABLE: "bad",
    Server.State.UNKNOWN: "idle",
}


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """A target, what can be said of it, and its share of its tier by weight.

    `start_percent`: where its piece of the tier's bar begins; `share_percent`: how wide it is.
    `ready_versions`: numbers, highest first; empty where the server has no versions.
    """

    target: Target
    tone: Tone
    text: Text
    ready_versions: list[int]
    start_percent: float
    share_percent: float

    @property
    def takes_traffic(self) -> bool:
        """True when requests can go there now."""
        return self.tone in {"ok", "warn"}


@dataclass(frozen=True, slots=True)
class Tier:
    """Targets that are tried together; tier 0 comes first."""

    number: int
    targets: list[TargetHealth]


@dataclass(frozen=True, slots=True)
class RouteHealth:
    """A route and its tiers, lowest first."""

    route: Route
    tone: Tone
    text: Text
    tiers: list[Tier]


def routes_health(routes: Iterable[Route]) -> list[RouteHealth]:
    """One item a route, in the given order; targets and their servers must be prefetched."""
    found = list(routes)
    placements = _placements_of(found)
    return [_route_health(route, placements) for route in found]


def _placements_of(routes: list[Route]) -> Placements:
    server_ids = {target.server_id for route in routes for target in route.targets.all()}
    rows = Placement.objects.filter(server_id__in=server_ids).select_related("model")
    return {(row.server_id, row.model.name): row for row in rows}


def _route_health(route: Route, placements: Placements) -> RouteHealth:
    tiers = [
        Tier(number, _tier_targets(list(targets), placements))
        for number, targets in groupby(
            sorted(route.targets.all(), key=lambda target: target.tier),
            key=lambda target: target.tier,
        )
    ]
    tone, text = _verdict(route, [health for tier in tiers for health in tier.targets])
    return RouteHealth(route, tone, text, tiers)


def _tier_targets(targets: list[Target], placements: Placements) -> list[TargetHealth]:
    whole = sum(_weight(target) for target in targets)
    start = 0.0
    found = []
    for target in targets:
        share = 100 * _weight(target) / whole if whole else 0.0
        placement = placements.get((target.server_id, target.upstream_model))
        tone, text = target_state(target, placement)
        ready = placement.ready_versions if placement else []
        found.append(TargetHealth(target, tone, text, ready, start, share))
        start += share
    return found


def _weight(target: Target) -> int:
    return target.weight if target.is_enabled else 0


def target_state(target: Target, placement: Placement | None) -> tuple[Tone, Text]:
    """Tone and words for a target; `placement` is `None` where the server has no such model."""
    server = target.server
    if not target.is_enabled:
        return "idle", _("Disabled")
    if not target.weight:
        return "idle", _("Weight 0")
    if not server.is_enabled:
        return "idle", _("Server disabled")
    if server.state in {Server.State.UNREACHABLE, Server.State.UNKNOWN} or not server.is_triton:
        return _SERVER_TONES[server.state], server.get_state_display()
    return _placement_state(target, placement)


def _placement_state(target: Target, placement: Placement | None) -> tuple[Tone, Text]:
    if placement is None:
        return "bad", _("Not on the server")
    if not placement.ready_versions:
        return "bad", placement.get_observed_display()
    if target.version and target.version not in placement.ready_versions:
        return "bad", format_lazy(_("Version {version} not ready"), version=target.version)
    if placement.observed == Placement.Observed.DEGRADED:
        return "warn", placement.get_observed_display()
    return _SERVER_TONES[target.server.state], _("Ready")


def _verdict(route: Route, targets: list[TargetHealth]) -> tuple[Tone, Text]:
    """The route as a whole: targets taken out on purpose do not count against it."""
    wanted = [health for health in targets if health.tone != "idle"]
    if not route.is_enabled:
        return "idle", _("Disabled")
    if not any(health.takes_traffic for health in targets):
        return "bad", _("No target ready")
    if all(health.tone == "ok" for health in wanted):
        return "ok", _("Healthy")
    return "warn", _("Degraded")

"""Which targets a request may be sent to, and in which order."""

import random
from collections.abc import Iterator, Sequence
from itertools import groupby

from apps.core.errors import InvalidRequestError, NoCapacityError
from apps.gateway.adapters.dialects import adapter_for, endpoints_of
from apps.gateway.errors import ModelNotLoadedError
from apps.gateway.orders import Endpoint
from apps.gateway.snapshot import RouteRow, TargetRow


def targets_for(route: RouteRow, endpoint: Endpoint, *, is_on_prem_only: bool) -> list[TargetRow]:
    """Targets in the order to try them: by tier, and in a tier at random by weight.

    `is_on_prem_only`: route, team or key keep the data in the house.
    Raises InvalidRequestError when the route cannot do this at all, ModelNotLoadedError when its
    model is loaded nowhere, NoCapacityError when no target is left for another reason.
    """
    allowed = _allowed(route, is_on_prem_only=is_on_prem_only)
    able = [target for target in allowed if adapter_for(target, endpoint)]
    if not able:
        raise _not_able(route, endpoint, allowed)
    ready = [target for target in able if target.is_ready]
    if not ready:
        raise ModelNotLoadedError(
            f"the model “{route.name}” is not loaded on any server; ask the operators to load it, "
            "or try again when it is",
            retry_after_seconds=5,
        )
    return list(_by_tier(ready))


def _allowed(route: RouteRow, *, is_on_prem_only: bool) -> list[TargetRow]:
    """Targets with a share of the traffic; none outside for data that must stay in the house."""
    allowed = [
        target
        for target in route.targets
        if target.weight > 0 and not (is_on_prem_only and target.server.is_external)
    ]
    if allowed:
        return allowed
    reason = (
        "its data must stay on-prem, and it has no target there"
        if is_on_prem_only and route.targets
        else "it has no target that is switched on"
    )
    raise NoCapacityError(
        f"the model “{route.name}” cannot be served: {reason}",
        code="no_target",
        retry_after_seconds=30,
    )


def _not_able(
    route: RouteRow, endpoint: Endpoint, allowed: Sequence[TargetRow]
) -> InvalidRequestError:
    offered = {name for target in allowed for name in endpoints_of(target)}
    paths = ", ".join(f"/v1/{name.replace('.', '/')}" for name in sorted(offered))
    return InvalidRequestError(
        f"the model “{route.name}” does not answer {endpoint}; it answers {paths}",
        code="endpoint_not_supported",
        fields={"model": [f"answers {paths}"]},
    )


def _by_tier(targets: list[TargetRow]) -> Iterator[TargetRow]:
    for _tier, members in groupby(targets, key=lambda target: target.tier):
        yield from _shuffled(list(members))


def _shuffled(targets: list[TargetRow]) -> list[TargetRow]:
    """Random order in which each place is drawn by weight (Efraimidis and Spirakis, 2006)."""
    if len(targets) == 1:
        return targets
    # Choosing a route's target is no secret.
    return sorted(
        targets,
        key=lambda target: random.random() ** (1 / target.weight),  # noqa: S311
        reverse=True,
    )

"""From an order to an admitted call: route, rights, targets, limits."""

from dataclasses import replace
from uuid import uuid4

from django.db import DatabaseError

from apps.core.errors import (
    InvalidRequestError,
    NoCapacityError,
    NotFoundError,
    PermissionDeniedError,
    UpstreamError,
)
from apps.gateway.adapters.contract import UpstreamRequest
from apps.gateway.adapters.dialects import adapter_for
from apps.gateway.call import Call
from apps.gateway.choice import targets_for
from apps.gateway.orders import Order
from apps.gateway.runtime import Runtime
from apps.gateway.snapshot import KeyRow, RouteRow, Snapshot, TargetRow
from apps.gateway.wishes import NO_WISHES, Wishes


def route_for(snapshot: Snapshot, key: KeyRow, name: str) -> RouteRow:
    """The route of that public name. Raises NotFoundError, or PermissionDeniedError."""
    route = snapshot.routes.get(name)
    if route is None:
        raise NotFoundError(
            f"there is no model “{name[:128]}”; GET /v1/models lists those of your key",
            code="model_not_found",
        )
    if not key.may_use(route):
        raise PermissionDeniedError(
            f"your key may not use the model “{route.name}”; GET /v1/models lists those it may",
            code="model_not_allowed",
        )
    return route


async def admit(
    runtime: Runtime, order: Order, key: KeyRow, request_id: str, wishes: Wishes = NO_WISHES
) -> Call:
    """A call with everything held that it may use. Whoever gets it must let Relay serve it.

    Raises InferAdminError; nothing is held or recorded then.
    """
    route = route_for(runtime.keeper.current(), key, order.model)
    order = _bounded(order, key, route)
    targets = await runtime.cooling.ready(
        route,
        lambda: targets_for(
            route, order.endpoint, is_on_prem_only=route.is_on_prem_only or key.is_on_prem_only
        ),
    )
    if wishes.no_fallback:
        targets = targets[:1]
    prepared = _prepared(order, targets)
    call = Call(str(uuid4()), request_id, order, key, route, targets, prepared)
    try:
        await runtime.waiting.enter(route, key.priority, lambda: _hold(runtime, call))
    except DatabaseError as exc:  # a budget's counter is gone and the ledger cannot be asked
        raise NoCapacityError(
            "a budget cannot be checked at the moment; try again in a few seconds",
            code="admission_unavailable",
            retry_after_seconds=5,
        ) from exc
    return call


async def _hold(runtime: Runtime, call: Call) -> None:
    """Hold what the call may use, a place on the best target that has room among it.

    Raises TargetsBusyError when none has, and what the gate raises.
    """
    plan = call.plan()
    call.standing = await runtime.gate.admit(call.id, plan, call.lost())
    if plan.targets:
        call.held = plan
        call.placed = call.targets.pop(call.standing.target)
        call.targets.insert(0, call.placed)


def _bounded(order: Order, key: KeyRow, route: RouteRow) -> Order:
    """The order with a maximum of output tokens: its own, or the route's default.

    The default is imposed on the server only where a budget or a limit on tokens counts on it.
    """
    if order.max_output_tokens is not None:
        return order
    counts = bool(key.budgets or route.budgets) or any(
        limit.kind == "tpm" for limit in (*key.limits, *route.limits)
    )
    return replace(order, max_output_tokens=route.default_max_tokens, imposes_maximum=counts)


def _prepared(order: Order, targets: list[TargetRow]) -> dict[int, UpstreamRequest]:
    """The request for the first target that can do what the order asks for, by target id.

    Raises InvalidRequestError when not one of them can.
    """
    refusal: InvalidRequestError | None = None
    for target in targets:
        adapter = adapter_for(target, order.endpoint)
        if adapter is None:
            continue
        try:
            return {target.id: adapter.request_for(order, target)}
        except InvalidRequestError as exc:
            refusal = refusal or exc
    raise refusal or UpstreamError("no model server could be asked")

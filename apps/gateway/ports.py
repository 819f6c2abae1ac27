"""The gateway's only way to the database. Synchronous: called in threads, never on the hot path."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar, cast

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, connection
from django.db.models import Q, Sum

from apps.billing import selectors as billing
from apps.billing.counters import spent_now
from apps.billing.models import UsageRecord
from apps.billing.pricing import PriceRow
from apps.core.money import to_picos
from apps.core.secrets import decrypt
from apps.fleet.models import Placement, Server
from apps.gateway.quotas import BudgetRow, LimitKind, LimitRow, Scope
from apps.gateway.snapshot import (
    KeyRow,
    Policy,
    RouteRow,
    ServerRow,
    Snapshot,
    TargetRow,
    Timeouts,
)
from apps.keys.models import ApiKey, Budget, Limit
from apps.keys.periods import Schedule
from apps.keys.rules import networks_of
from apps.keys.selectors import budgets_for_display, limits_for_display
from apps.routes.models import Route, Target

log = structlog.get_logger(__name__)

Row = TypeVar("Row", LimitRow, BudgetRow)
Prices = dict[tuple[int, str], PriceRow]
# Versions that answer, by server id and model name.
ReadyVersions = dict[tuple[int, str], list[int]]


def close() -> None:
    """Close this thread's connection to Postgres."""
    connection.close()


@contextmanager
def _live_connection() -> Iterator[None]:
    """Drop a connection that is broken or old, before and after; what a request does in Django."""
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


@_live_connection()
def load_snapshot(version: int) -> Snapshot:
    """Everything that the gateway serves, read now. `version`: the counter before reading."""
    limits = _by_route(_limit_row(row) for row in limits_for_display().filter(route__isnull=False))
    budgets = _by_route(
        _budget_row(row) for row in budgets_for_display().filter(route__isnull=False)
    )
    prices = billing.prices_now(datetime.now(UTC))
    ready = _ready_versions()
    routes = Route.objects.filter(is_enabled=True).prefetch_related("targets__server")
    return Snapshot(
        routes={
            route.name: _route_row(
                route, _target_rows(route, prices, ready), limits[route.pk], budgets[route.pk]
            )
            for route in routes
        },
        version=version,
    )


@_live_connection()
def load_key(digest: str) -> KeyRow | None:
    """The key of that digest, whatever its state; `None` when there is none."""
    key = ApiKey.objects.select_related("team").filter(digest=digest).first()
    return None if key is None else _key_row(key)


@_live_connection()
def load_spent(budget_id: int, since: datetime) -> int:
    """Pico-units spent on a budget since a moment, by the ledger and what waits to come into it.

    0 when the budget is gone.
    """
    budget = Budget.objects.filter(pk=budget_id).first()
    return 0 if budget is None else spent_now(budget, since)


@_live_connection()
def load_overflow_spent(route_id: int, since: datetime) -> int:
    """Pico-units that a route's overflow has cost since a moment, by the ledger."""
    overflown = UsageRecord.objects.filter(
        route_id=route_id, at__gte=since, decision__overflow=True
    )
    return int(overflown.aggregate(total=Sum("cost_picos"))["total"] or 0)


def _key_row(key: ApiKey) -> KeyRow:
    is_of_caller = Q(key=key) | Q(team=key.team)
    return KeyRow(
        id=key.pk,
        name=key.name,
        team_id=key.team_id,
        team_name=key.team.name,
        is_team_active=key.team.is_active,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        route_ids=(
            None if key.allows_all_routes else frozenset(key.routes.values_list("pk", flat=True))
        ),
        limits=tuple(_limit_row(row) for row in limits_for_display().filter(is_of_caller)),
        budgets=tuple(_budget_row(row) for row in budgets_for_display().filter(is_of_caller)),
        is_on_prem_only=Route.DataClass.ON_PREM in (key.data_class, key.team.data_class),
        priority=key.team.priority if key.priority is None else key.priority,
        networks=networks_of(key.allowed_networks),
    )


def _limit_row(limit: Limit) -> LimitRow:
    kind = cast(LimitKind, limit.kind)  # the table's own constraint
    return LimitRow(kind=kind, value=limit.value, scope=_scope(limit))


def _budget_row(budget: Budget) -> BudgetRow:
    return BudgetRow(
        id=budget.pk,
        amount_picos=to_picos(budget.amount),
        currency=budget.currency,
        schedule=Schedule.of(budget),
        scope=_scope(budget),
        is_hard=budget.is_hard,
        warn_percents=tuple(budget.warn_percents),
        raised_picos=0 if budget.raised_amount is None else to_picos(budget.raised_amount),
        raised_until=budget.raised_until,
    )


def _scope(row: Limit | Budget) -> Scope:
    if row.key is not None:
        return Scope("key", row.key.pk, row.key.name)
    if row.team is not None:
        return Scope("team", row.team.pk, row.team.name)
    if row.route is not None:
        return Scope("route", row.route.pk, row.route.name)
    raise ValueError("a limit without a scope")


def _by_route(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.scope.id].append(row)
    return found


def _ready_versions() -> ReadyVersions:
    placements = Placement.objects.select_related("model")
    return {(row.server_id, row.model.name): row.ready_versions for row in placements}


def _route_row(
    route: Route, targets: Iterable[TargetRow], limits: list[LimitRow], budgets: list[BudgetRow]
) -> RouteRow:
    return RouteRow(
        id=route.pk,
        name=route.name,
        created=int(route.created_at.timestamp()),
        is_on_prem_only=route.data_class == Route.DataClass.ON_PREM,
        default_max_tokens=route.default_max_tokens,
        timeouts=Timeouts(
            connect=route.connect_timeout_seconds or settings.GATEWAY_CONNECT_TIMEOUT_SECONDS,
            first_byte=(
                route.first_byte_timeout_seconds or settings.GATEWAY_FIRST_BYTE_TIMEOUT_SECONDS
            ),
            idle=route.idle_timeout_seconds or settings.GATEWAY_IDLE_TIMEOUT_SECONDS,
            total=route.total_timeout_seconds or settings.GATEWAY_TOTAL_TIMEOUT_SECONDS,
        ),
        targets=tuple(sorted(targets, key=lambda target: target.tier)),
        limits=tuple(limits),
        budgets=tuple(budgets),
        policy=_policy(route),
    )


def _policy(route: Route) -> Policy:
    return Policy(
        max_attempts=route.max_attempts,
        wait_seconds=float(route.wait_seconds),
        max_waiting=route.max_waiting,
    )


def _target_rows(route: Route, prices: Prices, ready: ReadyVersions) -> list[TargetRow]:
    return [
        TargetRow(
            id=target.pk,
            server=server,
            upstream_model=target.upstream_model,
            version=target.version,
            protocol=target.protocol,
            tier=target.tier,
            weight=target.weight,
            is_ready=_is_ready(target, ready),
            price=prices.get((target.server_id, target.upstream_model)),
            max_in_flight=target.max_in_flight,
        )
        for target in route.targets.all()
        if target.is_enabled and target.server.is_enabled
        if (server := _server_row(target.server)) is not None
    ]


def _is_ready(target: Target, ready: ReadyVersions) -> bool:
    """Only Triton tells what is loaded; other servers are asked by the request itself."""
    if target.server.kind != Server.Kind.TRITON:
        return True
    versions = ready.get((target.server_id, target.upstream_model), [])
    return bool(versions) if target.version is None else target.version in versions


def _server_row(server: Server) -> ServerRow | None:
    """The server; `None` when its secret cannot be read, so that the others keep working."""
    try:
        secret = decrypt(server.api_key_encrypted)
    except ImproperlyConfigured:
        log.exception("gateway.secret_unreadable", server_id=server.pk)
        return None
    return ServerRow(
        id=server.pk,
        name=server.name,
        kind=server.kind,
        url=server.url,
        is_external=server.is_external,
        secret=secret,
    )

"""One client request on its way, and the record that it leaves."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

import orjson

from apps.billing.events import UsageAttempt, UsageEvent
from apps.billing.pricing import PriceRow, Quantities, cost_picos, worst_cost_picos
from apps.gateway.adapters.contract import UpstreamRequest
from apps.gateway.admission.gate import Settlement
from apps.gateway.admission.plan import Demand, Lost, Plan, plan_of
from apps.gateway.admission.standing import UNLIMITED, Standing
from apps.gateway.frames import Measured
from apps.gateway.orders import Order
from apps.gateway.quotas import TargetSlot
from apps.gateway.snapshot import KeyRow, RouteRow, TargetRow
from apps.gateway.usage import Usage

Status = Literal["ok", "error", "cancelled", "partial", "lost"]
_NO_USAGE = Usage(0, 0)
# What `lost` records carry: nobody saw the status.
_LOST_HTTP_STATUS = 500
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended; `error_code` is "" for a success."""

    status: Status
    http_status: int
    error_code: str = ""
    usage: Usage = _NO_USAGE


@dataclass(slots=True)
class Call:
    """A request that was understood, with its key, route and the targets it may go to.

    `id` names the record, `request_id` is what the client gave or got.
    """

    id: str
    request_id: str
    order: Order
    key: KeyRow
    route: RouteRow
    targets: list[TargetRow]
    # What the first able target is sent, prepared to see whether there is one.
    prepared: Mapping[int, UpstreamRequest]
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.perf_counter)
    standing: Standing = UNLIMITED
    target: TargetRow | None = None
    # Where the request has a place, for targets that take so many at once; with the plan it is of.
    placed: TargetRow | None = None
    held: Plan | None = None
    attempts: list[UsageAttempt] = field(default_factory=list)
    first_token_seconds: float | None = None
    is_closed: bool = False
    _attempt_started: float = 0.0

    def plan(self) -> Plan:
        """What must be held before the first target is called."""
        output = self.order.output_tokens_held(self.route.default_max_tokens)
        most = Quantities(
            self.order.input_tokens_held,
            output,
            images=self.order.images,
            compute_microseconds=int(self.route.timeouts.total * _MILLION),
        )
        costs: dict[str, int] = {}
        for target in self.targets:
            if target.price is not None:
                cost = worst_cost_picos(target.price, most)
                costs[target.price.currency] = max(costs.get(target.price.currency, 0), cost)
        return plan_of(
            (*self.key.limits, *self.route.limits),
            (*self.key.budgets, *self.route.budgets),
            Demand(tokens=self.order.input_tokens_held + output, costs=costs),
            self.at,
            self._slots(),
        )

    def _slots(self) -> list[TargetSlot]:
        """Places of the targets in their order; none where no target has a cap."""
        if all(target.max_in_flight is None for target in self.targets):
            return []
        return [target.slot for target in self.targets]

    def lost(self) -> Lost:
        """The record that is written when this worker dies with the call."""
        usage = Usage(self.order.input_tokens_held, 0, is_estimated=True)
        ending = Ending("lost", _LOST_HTTP_STATUS, "worker_lost", usage)
        event = self.event(ending, self.targets[0])
        return Lost(orjson.dumps(event), _charges(event))

    def begin(self, target: TargetRow) -> None:
        """A try of a target starts."""
        self.target = target
        self._attempt_started = time.perf_counter()

    def end_attempt(self, status: str, error: str = "") -> None:
        """The running try has ended; does nothing when none runs."""
        if self.target is None or not self._attempt_started:
            return
        self.attempts.append(
            UsageAttempt(
                server=self.target.server.name,
                model=self.target.upstream_model,
                status=status,
                error=error,
                seconds=round(time.perf_counter() - self._attempt_started, 6),
            )
        )
        self._attempt_started = 0.0

    def saw_content(self) -> None:
        """The first content of the answer has come."""
        if self.first_token_seconds is None:
            self.first_token_seconds = time.perf_counter() - self.started

    def settlement(self, ending: Ending) -> Settlement:
        """What the gate needs to know about the ending."""
        event = self.event(ending, self.target)
        return Settlement(
            event=event,
            tokens=ending.usage.total_tokens,
            charges=_charges(event),
        )

    def measured(self, ending: Ending) -> Measured:
        """What telemetry counts of it."""
        duration = time.perf_counter() - self.started
        waited = sum(attempt["seconds"] for attempt in self.attempts)
        return Measured(
            route=self.route.name,
            server="" if self.target is None else str(self.target.server.id),
            model="" if self.target is None else self.target.upstream_model,
            status=ending.status,
            input_tokens=ending.usage.input_tokens,
            output_tokens=ending.usage.output_tokens,
            latency_seconds=duration,
            first_token_seconds=self.first_token_seconds,
            added_seconds=max(0.0, duration - waited),
        )

    def event(self, ending: Ending, target: TargetRow | None) -> UsageEvent:
        """The usage event: the row of the ledger."""
        price = None if target is None else target.price
        usage = self._measured_usage(ending.usage, price)
        return UsageEvent(
            id=self.id,
            at=self.at.isoformat(),
            endpoint=self.order.called or self.order.endpoint,
            status=ending.status,
            http_status=ending.http_status,
            error_code=ending.error_code,
            is_stream=self.order.is_stream,
            request_id=self.request_id,
            team_id=self.key.team_id,
            key_id=self.key.id,
            route_id=self.route.id,
            route_name=self.route.name,
            server_id=None if target is None else target.server.id,
            server_name="" if target is None else target.server.name,
            upstream_model="" if target is None else target.upstream_model,
            version=None if target is None else target.version,
            input_tokens=usage.input_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            images=usage.images,
            compute_microseconds=usage.compute_microseconds,
            is_estimated=usage.is_estimated,
            price_id=None if price is None else price.id,
            cost_picos=_cost(ending.status, usage, price),
            currency="" if price is None else price.currency,
            duration_seconds=round(time.perf_counter() - self.started, 6),
            first_token_seconds=self.first_token_seconds,
            attempts=self.attempts,
            decision=self._decision(target),
        )

    def _measured_usage(self, usage: Usage, price: PriceRow | None) -> Usage:
        """Usage with the images of the prompt, and with seconds where they cost anything."""
        if self.order.images:
            usage = replace(usage, images=self.order.images)
        if price is not None and price.compute_microsecond_picos and self.attempts:
            seconds = self.attempts[-1]["seconds"]
            usage = replace(usage, compute_microseconds=round(seconds * _MILLION))
        return usage

    def _decision(self, chosen: TargetRow | None) -> dict[str, object]:
        """Why it went where it went, in words and numbers for the request's page."""
        return {
            "limits": self.standing.facts(),
            "targets": [
                {"target": target.label, "tier": target.tier, "weight": target.weight}
                for target in self.targets
            ],
            "chosen": None if chosen is None else {"target": chosen.label, "rule": self._rule()},
        }

    def _rule(self) -> str:
        tried = len(self.attempts)
        is_kept = self.route.is_on_prem_only or self.key.is_on_prem_only
        where = "on-prem only" if is_kept else "anywhere"
        return f"fallback after {tried - 1}, {where}" if tried > 1 else f"first choice, {where}"


def _charges(event: UsageEvent) -> dict[str, int]:
    """What budgets are charged, by currency."""
    return {event["currency"]: event["cost_picos"]} if event["cost_picos"] else {}


def _cost(status: Status, usage: Usage, price: PriceRow | None) -> int | None:
    """Pico-units; a request that nobody answered costs nothing, the fee for it included."""
    if price is None:
        return None
    return 0 if status == "error" else cost_picos(price, usage)

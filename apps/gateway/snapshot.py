"""What a worker knows without asking: routes, targets, prices, limits. Replaced as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from apps.billing.pricing import PriceRow
from apps.gateway.quotas import BudgetRow, LimitRow, TargetSlot
from apps.keys.models import Priority
from apps.keys.rules import Network


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A model server as the gateway calls it; `secret` is its API key in clear, "" for none."""

    id: int
    name: str
    kind: str
    url: str
    is_external: bool
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One place to send requests to; `is_ready` is False while its model is not loaded there."""

    id: int
    server: ServerRow
    upstream_model: str
    version: int | None
    protocol: str
    tier: int
    weight: int
    is_ready: bool
    price: PriceRow | None
    # Requests of all workers at once; None: no cap.
    max_in_flight: int | None = None
    # Its place in the admission script, made once.
    slot: TargetSlot = field(init=False)
    # Server, model and version in one word, as in `gpu-1/llama:3`.
    label: str = field(init=False)

    def __post_init__(self) -> None:
        version = "" if self.version is None else f":{self.version}"
        label = f"{self.server.name}/{self.upstream_model}{version}"
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "slot", TargetSlot(str(self.id), self.max_in_flight or 0))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds for a connection, the first byte, between two bytes, and for everything together."""

    connect: float
    first_byte: float
    idle: float
    total: float


@dataclass(frozen=True, slots=True)
class Policy:
    """How a route treats requests that do not go straight through.

    `max_waiting` requests of a worker wait at most `wait_seconds` for a target that has room.
    """

    max_attempts: int = 3
    wait_seconds: float = 5.0
    max_waiting: int = 100


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A public model name. `targets` holds those switched on, lowest tier first."""

    id: int
    name: str
    created: int  # Unix seconds
    is_on_prem_only: bool
    default_max_tokens: int
    timeouts: Timeouts
    targets: tuple[TargetRow, ...]
    limits: tuple[LimitRow, ...]
    budgets: tuple[BudgetRow, ...]
    policy: Policy = Policy()


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key that exists, with all limits and budgets of it and of its team."""

    id: int
    name: str
    team_id: int
    team_name: str
    is_team_active: bool
    expires_at: datetime | None
    revoked_at: datetime | None
    # None: every route.
    route_ids: frozenset[int] | None
    limits: tuple[LimitRow, ...]
    budgets: tuple[BudgetRow, ...]
    # Of the key or of its team.
    is_on_prem_only: bool = False
    # 0 to 9: whoever has more is served first when it is full.
    priority: int = Priority.NORMAL.value
    # Where its callers must be; empty: anywhere.
    networks: tuple[Network, ...] = ()

    def may_use(self, route: RouteRow) -> bool:
        """True when the key's list of routes allows this one."""
        return self.route_ids is None or route.id in self.route_ids


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Enabled routes by public name, as they were when Redis counted `version`."""

    routes: Mapping[str, RouteRow]
    version: int

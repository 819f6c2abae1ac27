"""Hold, then settle: what stands between a request and the money.

`admit` holds everything that the request may use, or raises and holds nothing. Whoever was admitted
calls `settle` or `release` exactly once; both may be called when Redis is away, and then are made
good in the background. A worker that dies is made good by the others (`reap`).
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import orjson
import structlog

from apps.billing.events import EVENT_FIELD, USAGE_STREAM, UsageEvent
from apps.gateway.admission.batcher import RedisAwayError, ScriptBatcher
from apps.gateway.admission.plan import Lost, Plan, charges_text
from apps.gateway.admission.refusal import TargetsBusyError, refusal_of
from apps.gateway.admission.standing import Standing, standing_of
from apps.gateway.quotas import BudgetRow

log = structlog.get_logger(__name__)

# A hold outlives its worker by 30 s at most, and is reaped within five more.
LEASE_SECONDS = 30
RENEW_SECONDS = 5.0
REAP_SECONDS = 5.0
_REAP_AT_ONCE = 200
_RETRY_SECONDS = 0.25
_SEED_ATTEMPTS = 5
# Leaves room below 2^63 for what is spent from then on.
_LARGEST_SPENT = 9_100_000 * 10**12

# Pico-units spent on a budget since a moment, from the ledger.
Spent = Callable[[BudgetRow, datetime], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a request used. `event` is `None` when it never ran: then all is given back."""

    event: UsageEvent | None
    tokens: int
    # Pico-units by currency: a budget is charged in its own.
    charges: Mapping[str, int]


_NOTHING = Settlement(event=None, tokens=0, charges={})


class Gate:
    """Admission of one event loop."""

    def __init__(self, batcher: ScriptBatcher, spent: Spent) -> None:
        self._batcher = batcher
        self._spent = spent
        self._running: set[str] = set()
        self._unsettled: deque[tuple[str, Settlement]] = deque()
        self._seeding: dict[str, asyncio.Future[None]] = {}
        # The most settled requests that Redis has told of.
        self._settled = 0

    @property
    def is_away(self) -> bool:
        """True while Redis does not answer."""
        return self._batcher.is_away

    @property
    def unsettled(self) -> int:
        """Settlements that wait for Redis to come back."""
        return len(self._unsettled)

    async def admit(self, request_id: str, plan: Plan, lost: Lost) -> Standing:
        """Hold what the plan asks for.

        Raises QuotaExceededError naming the limit, TargetsBusyError when no target of the plan has
        room, or RedisAwayError; nothing is held then.
        """
        try:
            standing = await self._admit(request_id, plan, lost)
        except (RedisAwayError, asyncio.CancelledError):
            # The script may have run, or may yet: undo it whenever Redis can.
            self._unsettled.append((request_id, _NOTHING))
            raise
        self._running.add(request_id)
        return standing

    async def swap(self, request_id: str, plan: Plan, indexes: Sequence[int]) -> int | None:
        """Leave the target of the plan that was taken, for the first of `indexes` that has room.

        `None` when none has: the request has no place then. Raises RedisAwayError.
        """
        for _attempt in range(_SEED_ATTEMPTS):
            answer = await self._batcher.run("swap", request_id, *indexes)
            if answer[0] != b"seed":
                return answer[1] if answer[0] == b"ok" and answer[1] >= 0 else None
            await self._seed(plan, answer[1:])
        return None

    async def settle(self, request_id: str, settlement: Settlement) -> None:
        """Replace the holds by what was used, and hand the event to the ledger.

        Raises nothing but CancelledError; it is made good later whatever happens.
        """
        self._running.discard(request_id)
        try:
            await self._settle(request_id, settlement)
        except RedisAwayError:
            self._unsettled.append((request_id, settlement))
        except asyncio.CancelledError:
            self._unsettled.append((request_id, settlement))
            raise

    async def release(self, request_id: str) -> None:
        """Give everything back and record nothing: the request was never sent."""
        await self.settle(request_id, _NOTHING)

    async def renew(self) -> None:
        """Keep the leases of requests that run or wait to be settled."""
        ids = [*self._running, *(request_id for request_id, _settlement in self._unsettled)]
        if ids:
            await self._batcher.run("renew", LEASE_SECONDS, *ids)

    async def reap(self) -> int:
        """Give back what dead workers held; how many requests that were."""
        reaped = int(await self._batcher.run("reap", _REAP_AT_ONCE, USAGE_STREAM, EVENT_FIELD))
        if reaped:
            log.warning("gateway.holds_reaped", count=reaped)
        return reaped

    async def keep(self) -> None:
        """Renew and reap for ever; run it as a task."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with contextlib.suppress(RedisAwayError):
                await self.renew()
                # Not while settlements wait: their leases may just have run out.
                if not self._unsettled:
                    await self.reap()

    async def make_good(self) -> None:
        """Settle what could not be settled, for ever; run it as a task."""
        while True:
            await asyncio.sleep(_RETRY_SECONDS)
            if not self._batcher.is_away:
                await self.flush()

    async def flush(self) -> None:
        """Settle what waits, oldest first, until Redis goes away again."""
        while self._unsettled:
            request_id, settlement = self._unsettled[0]
            try:
                await self._settle(request_id, settlement)
            except RedisAwayError:
                return
            self._unsettled.popleft()

    async def _admit(self, request_id: str, plan: Plan, lost: Lost) -> Standing:
        text, charges = plan.text(), charges_text(lost.charges)
        for _attempt in range(_SEED_ATTEMPTS):
            answer = await self._batcher.run(
                "admit", request_id, text, charges, lost.event, LEASE_SECONDS, self._settled
            )
            verdict = answer[0]
            if verdict == b"ok":
                return standing_of(plan, answer[1:])
            if verdict == b"full":
                raise refusal_of(plan, answer[1:])
            if verdict == b"busy":
                raise TargetsBusyError
            if verdict == b"gone":
                break
            if verdict == b"back":
                await self._rewind()
            else:
                await self._seed(plan, answer[1:])
        raise RedisAwayError

    async def _settle(self, request_id: str, settlement: Settlement) -> None:
        event = settlement.event
        settled = await self._batcher.run(
            "settle",
            request_id,
            b"" if event is None else orjson.dumps(event),
            settlement.tokens,
            charges_text(settlement.charges),
            USAGE_STREAM,
            EVENT_FIELD,
        )
        self._settled = max(self._settled, settled)

    async def _rewind(self) -> None:
        """Redis has lost what it counted since some moment: have the money counted anew."""
        forgotten = await self._batcher.run("rewind", self._settled)
        log.error("gateway.redis_went_back", counters_forgotten=forgotten)

    async def _seed(self, plan: Plan, keys: Sequence[bytes]) -> None:
        """Rebuild missing budget counters from the ledger; one query a counter and worker."""
        for key in [raw.decode() for raw in keys]:
            seeding = self._seeding.get(key)
            if seeding is None:
                seeding = asyncio.ensure_future(self._seed_one(key, plan))
                self._seeding[key] = seeding
                seeding.add_done_callback(partial(self._seeded, key))
            await asyncio.shield(seeding)

    def _seeded(self, key: str, _done: "asyncio.Future[None]") -> None:
        self._seeding.pop(key)

    async def _seed_one(self, key: str, plan: Plan) -> None:
        found = plan.budget_of(key)
        if found is None:
            raise RuntimeError(f"no budget of the plan counts under {key}")
        budget, running = found
        period = running.window
        spent = await self._spent(budget, period.start)
        forget_at = 0 if period.end is None else int(period.end.timestamp()) + 86_400
        await self._batcher.run("seed", key, str(min(spent, _LARGEST_SPENT)), forget_at)
        log.info("gateway.budget_seeded", budget_id=budget.id, since=period.start.isoformat())

"""Names under which Redis counts what is held and spent; the gateway's scripts use the same.

A budget's counter is a hash of its period: `used` and `held`, pico-units as decimal text.
"""

from datetime import UTC, datetime

PREFIX = "inferadmin.gateway."
BUDGETS = f"{PREFIX}budget:"
OVERFLOWS = f"{PREFIX}overflow:"
SLOTS = f"{PREFIX}slots:"
# Request id → "<second> <index of the target taken> <plan>\n<charges>\n<event>".
HOLDS = f"{PREFIX}holds"


def budget_counter(budget_id: int, start: datetime) -> str:
    """Where a budget counts from a moment on."""
    return f"{BUDGETS}{budget_id}:{_stamp(start)}"


def overflow_counter(route_id: int, start: datetime) -> str:
    """Where the overflow of a route counts from a moment on."""
    return f"{OVERFLOWS}{route_id}:{_stamp(start)}"


def budget_of_counter(key: str) -> tuple[int, datetime] | None:
    """Budget id and start of a counter's name; `None` when it is none."""
    number, _colon, stamp = key.removeprefix(BUDGETS).partition(":")
    if not key.startswith(BUDGETS) or not number.isdecimal() or not stamp.isdecimal():
        return None
    seconds, micros = divmod(int(stamp), 1_000_000)
    return int(number), datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)


def _stamp(moment: datetime) -> int:
    """Microseconds since 1970: two resets in a second are two counters."""
    return int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond

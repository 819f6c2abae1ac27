"""How much is left after a request was admitted, as clients of OpenAI's API read it."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.gateway.admission.plan import Plan
from apps.gateway.snapshot import LimitRow

_WORDS = {"rpm": "requests", "tpm": "tokens"}


@dataclass(frozen=True, slots=True)
class Left:
    """A limit, what is left of it, and the seconds until some of it comes back."""

    limit: LimitRow
    remaining: int
    reset_seconds: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The tightest limit of each kind that applies."""

    tightest: tuple[Left, ...]

    def headers(self) -> dict[str, str]:
        """`x-ratelimit-…` headers; none without a limit."""
        found: dict[str, str] = {}
        for left in self.tightest:
            word = _WORDS[left.limit.kind]
            found[f"x-ratelimit-limit-{word}"] = str(left.limit.value)
            found[f"x-ratelimit-remaining-{word}"] = str(left.remaining)
            found[f"x-ratelimit-reset-{word}"] = f"{left.reset_seconds}s"
        return found


# Of a request to which no limit applies.
UNLIMITED = Standing(())


def standing_of(plan: Plan, figures: Sequence[int]) -> Standing:
    """Out of the figures of `admit.lua`: remaining and seconds to reset of each window."""
    tightest: dict[str, Left] = {}
    for index, limit in enumerate(plan.windows):
        left = Left(limit, figures[2 * index], figures[2 * index + 1])
        known = tightest.get(limit.kind)
        if known is None or left.remaining < known.remaining:
            tightest[limit.kind] = left
    return Standing(tuple(tightest.values()))

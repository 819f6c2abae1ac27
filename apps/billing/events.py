"""The event that carries one finished request from the gateway to the ledger.

The gateway appends it to USAGE_STREAM in the script that settles the request; the field EVENT_FIELD
holds it as JSON. The ledger reads it as a member of USAGE_GROUP and may be given it twice.
"""

from typing import Literal, TypedDict

USAGE_STREAM = "inferadmin.usage"
USAGE_GROUP = "ledger"
EVENT_FIELD = "event"
# Events that the ledger cannot write, kept for a person to look at; fields `event`, `reason`.
DEAD_LETTER_STREAM = "inferadmin.usage.dead"


class UsageAttempt(TypedDict):
    """One try of a target, in the order they were made."""

    server: str
    model: str
    # "ok", or how it failed; `error` is the code, "" for a success.
    status: str
    error: str
    seconds: float


class UsageEvent(TypedDict):
    """A row of `UsageRecord`: the same names, references as `…_id`."""

    id: str  # UUID of the request; a second event of the same id is dropped
    at: str  # ISO 8601, UTC: when the request was admitted
    endpoint: str
    status: Literal["ok", "error", "cancelled", "partial", "lost"]
    http_status: int
    error_code: str  # "" for a success
    is_stream: bool
    request_id: str
    team_id: int
    key_id: int
    route_id: int | None
    route_name: str
    server_id: int | None
    server_name: str
    upstream_model: str
    version: int | None
    input_tokens: int  # all of the prompt, the cached part included
    cached_input_tokens: int
    cache_write_tokens: int  # a part of the prompt, too
    output_tokens: int  # all of the completion, the reasoning included
    reasoning_tokens: int
    images: int  # in the prompt
    compute_microseconds: int  # 0 where the price does not count it
    is_estimated: bool
    price_id: int | None
    cost_picos: int | None  # None: no price was known
    currency: str  # "" without a price
    duration_seconds: float
    first_token_seconds: float | None
    attempts: list[UsageAttempt]
    decision: dict[str, object]

"""Usage events as the gateway appends them."""

import uuid
from datetime import UTC, datetime
from typing import Any

import orjson

from apps.billing.events import EVENT_FIELD, USAGE_STREAM, UsageEvent
from apps.core.redis import connection
from apps.keys.models import ApiKey


def usage_event(key: ApiKey, **changes: Any) -> UsageEvent:
    """A finished chat request of `key` at 0.001 USD; `changes` replace fields."""
    event = UsageEvent(
        id=str(uuid.uuid4()),
        at=datetime(2026, 12, 1, 10, 0, tzinfo=UTC).isoformat(),
        endpoint="chat.completions",
        status="ok",
        http_status=200,
        error_code="",
        is_stream=True,
        request_id="request-1",
        team_id=key.team_id,
        key_id=key.pk,
        route_id=None,
        route_name="smollm2",
        server_id=None,
        server_name="triton",
        upstream_model="smollm2",
        version=1,
        input_tokens=100,
        cached_input_tokens=0,
        cache_write_tokens=0,
        output_tokens=20,
        reasoning_tokens=0,
        images=0,
        compute_microseconds=0,
        is_estimated=False,
        price_id=None,
        cost_picos=10**9,
        currency="USD",
        duration_seconds=0.5,
        first_token_seconds=0.1,
        attempts=[
            {"server": "triton", "model": "smollm2", "status": "ok", "error": "", "seconds": 0.5}
        ],
        decision={"chosen": "triton"},
    )
    return event | changes  # type: ignore[return-value]  # some tests break the shape on purpose


def usage_append(*events: object) -> None:
    """Append events to the usage stream, bytes as they are."""
    pipe = connection().pipeline(transaction=False)
    for event in events:
        payload = event if isinstance(event, bytes) else orjson.dumps(event)
        pipe.xadd(USAGE_STREAM, {EVENT_FIELD: payload})
    pipe.execute()

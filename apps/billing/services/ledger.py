"""Writing usage events into the ledger and its daily sums."""

import time
from collections.abc import Sequence

import orjson
import structlog
from django.db import DataError, IntegrityError, connection, transaction

from apps.billing.services.usage_stream import Entry, Rejected, UsageStream
from apps.core.redis import connection as redis_connection
from apps.keys.models import ApiKey

log = structlog.get_logger(__name__)

# Longer than a batch can take: what a living worker holds is not claimed from it.
CLAIM_AFTER_SECONDS = 30.0

# One statement: the sums grow by exactly the records that were really inserted. Both parts write in
# a fixed order (record id, key of the sum), so that two drainers never wait for each other in a
# circle. Parts that events of an earlier version do not name are none. A route, server or price
# that is gone by now becomes NULL; the names stay.
_WRITE = """
WITH incoming AS (
    SELECT * FROM json_to_recordset(%s::json) AS event (
        id uuid, at timestamptz, endpoint text, status text, http_status int, error_code text,
        is_stream bool, request_id text, team_id bigint, key_id bigint, route_id bigint,
        route_name text, server_id bigint, server_name text, upstream_model text, version int,
        input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint,
        output_tokens bigint, reasoning_tokens bigint, images int, compute_microseconds bigint,
        is_estimated bool,
        price_id bigint, cost_picos bigint, currency text, duration_seconds float8,
        first_token_seconds float8, attempts jsonb, decision jsonb
    )
), inserted AS (
    INSERT INTO billing_usagerecord (
        id, at, endpoint, status, http_status, error_code, is_stream, request_id, team_id, key_id,
        route_id, route_name, server_id, server_name, upstream_model, version, input_tokens,
        cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, images,
        compute_microseconds, is_estimated, price_id, cost_picos, currency, duration_seconds,
        first_token_seconds, attempts, decision
    )
    SELECT
        event.id, at, endpoint, status, http_status, error_code, is_stream, request_id, team_id,
        key_id, route.id, route_name, server.id, server_name, event.upstream_model, version,
        input_tokens, cached_input_tokens, coalesce(cache_write_tokens, 0), output_tokens,
        coalesce(reasoning_tokens, 0), coalesce(images, 0), coalesce(compute_microseconds, 0),
        is_estimated, price.id, cost_picos, event.currency, duration_seconds, first_token_seconds,
        attempts, decision
    FROM incoming AS event
    LEFT JOIN routes_route AS route ON route.id = event.route_id
    LEFT JOIN fleet_server AS server ON server.id = event.server_id
    LEFT JOIN billing_price AS price ON price.id = event.price_id
    ORDER BY event.id
    ON CONFLICT (id) DO NOTHING
    RETURNING (at AT TIME ZONE 'UTC')::date AS day, team_id, key_id, route_name, server_name,
        upstream_model, currency, status, input_tokens, output_tokens, cost_picos
), summed AS (
    INSERT INTO billing_dailyusage AS kept (
        day, team_id, key_id, route_name, server_name, upstream_model, currency, requests, errors,
        input_tokens, output_tokens, cost_picos
    )
    SELECT
        day, team_id, key_id, route_name, server_name, upstream_model, currency, count(*),
        count(*) FILTER (WHERE status NOT IN ('ok', 'cancelled')),
        sum(input_tokens), sum(output_tokens), coalesce(sum(cost_picos), 0)
    FROM inserted
    GROUP BY day, team_id, key_id, route_name, server_name, upstream_model, currency
    ORDER BY day, key_id, route_name, server_name, upstream_model, currency
    ON CONFLICT (day, key_id, route_name, server_name, upstream_model, currency) DO UPDATE SET
        requests = kept.requests + excluded.requests,
        errors = kept.errors + excluded.errors,
        input_tokens = kept.input_tokens + excluded.input_tokens,
        output_tokens = kept.output_tokens + excluded.output_tokens,
        cost_picos = kept.cost_picos + excluded.cost_picos
)
SELECT count(*) FROM inserted
"""


def ledger_drain(*, seconds: float, claim_after_seconds: float = CLAIM_AFTER_SECONDS) -> int:
    """Write the events that wait, for up to `seconds`; gives the number of new records.

    Safe to run twice and beside others: an event leaves the stream after its record is committed,
    and a record that is there already is not counted again. An event that cannot be written goes
    to the dead letters. Raises OperationalError or RedisError, having lost nothing, when Postgres
    or Redis does not answer.
    """
    deadline = time.monotonic() + seconds
    stream = UsageStream(redis_connection(), claim_after_seconds=claim_after_seconds)
    written = 0
    for batch in stream.batches():
        records, rejected = ledger_write(batch)
        stream.finish(batch, rejected)
        written += records
        if time.monotonic() >= deadline:
            break
    return written


def ledger_write(entries: Sequence[Entry]) -> tuple[int, list[Rejected]]:
    """Commit the records of `entries` and their sums: the number of new records, and the rest."""
    sound, rejected = _sorted_out(entries)
    written, refused = _write(sound)
    for item in rejected + refused:
        log.error("billing.event_rejected", entry=item.entry.id.decode(), reason=item.reason)
    return written, rejected + refused


def _sorted_out(entries: Sequence[Entry]) -> tuple[list[Entry], list[Rejected]]:
    """Entries that look like events of keys that exist, and those that do not."""
    holders = {entry.id: _holder(entry) for entry in entries}
    asked = {key_id for key_id, _team_id in filter(None, holders.values())}
    known = set(ApiKey.objects.filter(pk__in=asked).values_list("pk", "team_id"))
    sound: list[Entry] = []
    rejected: list[Rejected] = []
    for entry in entries:
        holder = holders[entry.id]
        if holder in known:
            sound.append(entry)
        else:
            rejected.append(Rejected(entry, "not_an_event" if holder is None else "unknown_key"))
    return sound, rejected


def _holder(entry: Entry) -> tuple[int, int] | None:
    """Key and team of the event; `None` when it is none."""
    try:
        event = orjson.loads(entry.event)
        key_id, team_id = event["key_id"], event["team_id"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    is_sound = isinstance(key_id, int) and isinstance(team_id, int)
    return (key_id, team_id) if is_sound else None


def _write(entries: Sequence[Entry]) -> tuple[int, list[Rejected]]:
    """Write all in one transaction; where one is refused, halve until it stands alone."""
    if not entries:
        return 0, []
    try:
        return _insert(entries), []
    except (DataError, IntegrityError) as exc:
        if len(entries) > 1:
            return _write_halves(entries)
        refusal = exc
    try:  # a route that was deleted in the same moment is NULL the second time
        return _insert(entries), []
    except (DataError, IntegrityError):
        return 0, [Rejected(entries[0], type(refusal.__cause__).__name__)]


def _write_halves(entries: Sequence[Entry]) -> tuple[int, list[Rejected]]:
    middle = len(entries) // 2
    first, first_rejected = _write(entries[:middle])
    second, second_rejected = _write(entries[middle:])
    return first + second, first_rejected + second_rejected


def _insert(entries: Sequence[Entry]) -> int:
    """Number of records that were not there before."""
    payload = b"[" + b",".join(entry.event for entry in entries) + b"]"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WRITE, [payload.decode()])
        return int(cursor.fetchone()[0])

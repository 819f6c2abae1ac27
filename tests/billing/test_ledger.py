"""Events of the usage stream become records and daily sums, each exactly once."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import orjson
import pytest
from django.db import connection as database
from django.db import transaction

from apps.billing.events import DEAD_LETTER_STREAM, USAGE_GROUP, USAGE_STREAM
from apps.billing.models import DailyUsage, UsageRecord
from apps.billing.services.ledger import ledger_drain, ledger_write
from apps.billing.services.usage_stream import Entry
from apps.billing.tasks import drain_ledger
from apps.core.redis import connection
from apps.keys.models import ApiKey
from tests.factories import ApiKeyFactory, PriceFactory, RouteFactory, ServerFactory
from tests.support.races import at_once
from tests.support.usage import usage_append, usage_event

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def key(db: None) -> ApiKey:
    return ApiKeyFactory.create()


def _drain() -> int:
    return ledger_drain(seconds=10, claim_after_seconds=0)


def _waiting() -> tuple[int, int]:
    """Entries on the stream, and those that a reader holds."""
    pending: Any = connection().xpending(USAGE_STREAM, USAGE_GROUP)
    return connection().xlen(USAGE_STREAM), pending["pending"]


def _rejections() -> list[tuple[bytes, bytes]]:
    found: Any = connection().xrange(DEAD_LETTER_STREAM)
    return [(fields[b"event"], fields[b"reason"]) for _id, fields in found]


def test_a_record_is_what_the_event_says(key: ApiKey) -> None:
    route, price = RouteFactory.create(), PriceFactory.create()
    event = usage_event(
        key, route_id=route.pk, server_id=price.server_id, price_id=price.pk, version=None
    )

    usage_append(event)
    written = _drain()

    expected: dict[str, Any] = json.loads(json.dumps(event))
    record: Any = UsageRecord.objects.values().get()
    assert written == 1
    assert (str(record.pop("id")), record.pop("at")) == (
        expected.pop("id"),
        datetime.fromisoformat(expected.pop("at")),
    )
    assert record == expected
    assert _waiting() == (0, 0)


def test_daily_sums_follow_the_records(key: ApiKey) -> None:
    usage_append(
        usage_event(key),
        usage_event(key, status="error", cost_picos=None, currency="", output_tokens=0),
        usage_event(key, status="cancelled"),
        usage_event(key, status="lost"),
        usage_event(key, at="2026-12-02T01:30:00+02:00"),  # 1 December in UTC
        usage_event(key, at="2026-12-02T00:00:00Z"),
    )

    _drain()
    usage_append(usage_event(key))
    _drain()

    rows = DailyUsage.objects.order_by("day", "-currency").values_list(
        "day", "currency", "requests", "errors", "input_tokens", "output_tokens", "cost_picos"
    )
    first, second = date(2026, 12, 1), date(2026, 12, 2)
    assert list(rows) == [
        (first, "USD", 5, 1, 500, 100, Decimal(5 * 10**9)),
        (first, "", 1, 1, 100, 0, Decimal(0)),
        (second, "USD", 1, 0, 100, 20, Decimal(10**9)),
    ]


def test_an_event_delivered_twice_is_counted_once(key: ApiKey) -> None:
    event = usage_event(key)

    usage_append(event, event)
    written = _drain()
    usage_append(event)
    again = _drain()

    assert (written, again) == (1, 0)
    assert DailyUsage.objects.get().requests == 1
    assert _waiting() == (0, 0)


def test_what_a_dead_reader_holds_is_claimed(key: ApiKey) -> None:
    usage_append(*[usage_event(key) for _ in range(3)])
    connection().xgroup_create(USAGE_STREAM, USAGE_GROUP, id="0")
    connection().xreadgroup(USAGE_GROUP, "dead", {USAGE_STREAM: ">"}, count=2)

    patient = ledger_drain(seconds=10, claim_after_seconds=60)
    assert (patient, _waiting()) == (1, (2, 2))
    eager = _drain()

    assert (eager, _waiting()) == (2, (0, 0))


POISON: list[tuple[Callable[[ApiKey], object], bytes]] = [
    (lambda key: b"{not json", b"not_an_event"),
    (lambda key: b"[1]", b"not_an_event"),
    (lambda key: b"", b"not_an_event"),
    (lambda key: usage_event(key, key_id="1"), b"not_an_event"),
    (lambda key: usage_event(key, key_id=10**6), b"unknown_key"),
    (lambda key: usage_event(key, key_id=10**30), b"not_an_event"),
    (lambda key: usage_event(key, team_id=key.team_id + 1), b"unknown_key"),
    (lambda key: usage_event(key, id="no uuid"), b"InvalidTextRepresentation"),
    (lambda key: usage_event(key, at=None), b"NotNullViolation"),
    (lambda key: usage_event(key, cost_picos=-1), b"CheckViolation"),
    (lambda key: usage_event(key, status="fine"), b"CheckViolation"),
    (lambda key: usage_event(key, input_tokens=10**30), b"NumericValueOutOfRange"),
    (lambda key: usage_event(key, route_name="x" * 200), b"StringDataRightTruncation"),
    (lambda key: usage_event(key, route_name="\x00"), b"UntranslatableCharacter"),
]


@pytest.mark.parametrize(("poison", "reason"), POISON)
def test_an_event_that_cannot_be_written_is_put_aside_and_stops_nothing(
    key: ApiKey,
    caplog: pytest.LogCaptureFixture,
    poison: Callable[[ApiKey], object],
    reason: bytes,
) -> None:
    bad = poison(key)
    payload = bad if isinstance(bad, bytes) else json.dumps(bad).encode()

    usage_append(*[usage_event(key) for _ in range(4)], payload, usage_event(key))
    written = _drain()

    assert written == UsageRecord.objects.count() == DailyUsage.objects.get().requests == 5
    assert _rejections() == [(payload, reason)]
    assert _waiting() == (0, 0)
    assert "billing.event_rejected" in caplog.text
    assert reason.decode() in caplog.text


def test_an_entry_without_an_event_is_put_aside(key: ApiKey) -> None:
    connection().xadd(USAGE_STREAM, {"other": "field"})

    _drain()

    assert _rejections() == [(b"", b"not_an_event")]


def test_names_stay_when_what_they_name_is_deleted(key: ApiKey) -> None:
    route, server, price = RouteFactory.create(), ServerFactory.create(), PriceFactory.create()
    event = usage_event(key, route_id=route.pk, server_id=server.pk, price_id=price.pk)
    for row in (route, server, price):
        row.delete()

    usage_append(event)
    _drain()

    record = UsageRecord.objects.get()
    assert (record.route_id, record.server_id, record.price_id) == (None, None, None)
    assert (record.route_name, record.cost_picos) == ("smollm2", 10**9)


@pytest.mark.django_db(transaction=True)
def test_a_route_deleted_while_its_event_is_written_does_not_lose_the_event() -> None:
    key, route = ApiKeyFactory.create(), RouteFactory.create()
    events = [usage_event(key, route_id=route.pk) for _ in range(20)]
    entries = [Entry(b"%d-0" % number, orjson.dumps(event)) for number, event in enumerate(events)]

    with transaction.atomic():
        route.delete()
        writer = threading.Thread(target=_in_a_connection_of_its_own(ledger_write, entries))
        writer.start()
        writer.join(0.3)
    writer.join(10)

    assert UsageRecord.objects.filter(route=None).count() == 20
    assert DailyUsage.objects.get().requests == 20


def _in_a_connection_of_its_own(action: Callable[..., object], *args: object) -> Any:
    def run() -> None:
        action(*args)
        database.close()

    return run


@pytest.mark.django_db(transaction=True)
def test_drainers_side_by_side_neither_double_nor_deadlock() -> None:
    keys = ApiKeyFactory.create_batch(4)
    events = [usage_event(keys[n % 4], route_name=f"route-{n % 7}") for n in range(2000)]
    usage_append(*events, *reversed(events))

    results = at_once([_drain] * 4)

    assert sum(int(str(result)) for result in results) == 2000
    assert UsageRecord.objects.count() == 2000
    assert sum(DailyUsage.objects.values_list("requests", flat=True)) == 2000
    assert _waiting() == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_opposite_orders_of_the_same_events_do_not_deadlock() -> None:
    key = ApiKeyFactory.create()
    events = [usage_event(key, route_name=f"route-{n % 50}") for n in range(400)]
    entries = [Entry(b"1-0", orjson.dumps(event)) for event in events]

    results = at_once([partial(ledger_write, entries), partial(ledger_write, entries[::-1])] * 2)

    assert sum(result[0] for result in results if isinstance(result, tuple)) == 400
    assert sum(DailyUsage.objects.values_list("requests", flat=True)) == 400


_KILLED_BEFORE_ACK = """
import os, signal, django
django.setup()
from apps.billing.services import ledger, usage_stream
usage_stream.UsageStream.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
ledger.ledger_drain(seconds=10)
"""


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_between_commit_and_acknowledgement_bills_nothing_twice() -> None:
    key = ApiKeyFactory.create()
    usage_append(*[usage_event(key) for _ in range(5)])
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "INFERADMIN_DATABASE_URL": _test_database_url(),
    }

    killed = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", _KILLED_BEFORE_ACK], env=environment, check=False, timeout=60
    )
    assert killed.returncode == -9
    assert (UsageRecord.objects.count(), _waiting()) == (5, (5, 5))
    written = _drain()

    assert written == 0
    assert DailyUsage.objects.get().requests == UsageRecord.objects.count() == 5
    assert _waiting() == (0, 0)


def _test_database_url() -> str:
    settings = database.settings_dict
    host, port = settings["HOST"], settings["PORT"]
    return f"postgresql://{settings['USER']}@/{settings['NAME']}?host={host}&port={port}"


@pytest.mark.django_db(transaction=True)
def test_events_wait_while_postgres_is_away(caplog: pytest.LogCaptureFixture) -> None:
    usage_append(usage_event(ApiKeyFactory.create()))
    host = database.settings_dict["HOST"]

    database.close()
    database.settings_dict["HOST"] = "/nowhere"
    try:
        assert drain_ledger() == 0
    finally:
        database.close()
        database.settings_dict["HOST"] = host
    assert _waiting() == (1, 1)
    assert "billing.ledger_waits" in caplog.text

    assert drain_ledger() == 1
    assert (UsageRecord.objects.count(), _waiting()) == (1, (0, 0))


def test_a_run_ends_when_its_time_is_over(key: ApiKey) -> None:
    usage_append(*[usage_event(key) for _ in range(1500)])

    written = ledger_drain(seconds=0)

    assert written == 1000
    assert _waiting() == (500, 0)
    assert datetime.now(UTC).date() >= DailyUsage.objects.get().day

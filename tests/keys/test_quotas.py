"""Limits and budgets of teams, keys and routes."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import pytest
from pytest_django import Settings

from apps.core.actors import SYSTEM, Actor
from apps.core.audit import history_of
from apps.core.errors import InvalidRequestError, NotFoundError, PermissionDeniedError
from apps.core.models import User
from apps.keys import quotas
from apps.keys.models import Budget, Limit
from apps.keys.periods import window_of
from tests.factories import ApiKeyFactory, BudgetFactory, LimitFactory, RouteFactory, TeamFactory
from tests.support.races import at_once


def test_a_limit_is_set_changed_and_lifted_with_a_trace_on_its_holder(actor: Actor) -> None:
    key = ApiKeyFactory.create()
    scope = quotas.Scope(key_id=key.pk)

    first = quotas.limit_set(actor=actor, scope=scope, kind="rpm", value=60)
    second = quotas.limit_set(actor=actor, scope=scope, kind="rpm", value=30)
    quotas.limit_clear(actor=actor, limit_id=second.pk)

    assert first.pk == second.pk
    assert Limit.objects.count() == 0
    assert [(entry.action, entry.before, entry.after) for entry in history_of(key)] == [
        ("limit.clear", {"rpm.value": 30}, {}),
        ("limit.set", {"rpm.value": 60}, {"rpm.value": 30}),
        ("limit.set", {}, {"rpm.value": 60}),
    ]


def test_one_budget_a_period(actor: Actor) -> None:
    scope = quotas.Scope(team_id=TeamFactory.create().pk)
    budget_set = partial(quotas.budget_set, actor=actor, scope=scope)

    budget_set(period="month", amount=Decimal(10))
    budget_set(period="month", amount=Decimal(20), currency="EUR")
    budget_set(period="day", amount=Decimal(1))

    assert sorted(Budget.objects.values_list("period", "amount", "currency")) == [
        ("day", Decimal(1), "USD"),
        ("month", Decimal(20), "EUR"),
    ]


@pytest.mark.parametrize("value", [0, -1, 10**12 + 1, 10**30])
def test_a_limit_has_bounds(actor: Actor, value: int) -> None:
    scope = quotas.Scope(route_id=RouteFactory.create().pk)

    with pytest.raises(InvalidRequestError) as error:
        quotas.limit_set(actor=actor, scope=scope, kind="rpm", value=value)

    assert list(error.value.fields) == ["value"]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("amount", {"amount": Decimal(-1)}),
        ("amount", {"amount": Decimal(9_000_001)}),
        ("amount", {"amount": Decimal("NaN")}),
        ("amount", {"amount": Decimal("0.0000001")}),
        ("currency", {"amount": Decimal(1), "currency": "usd"}),
        ("currency", {"amount": Decimal(1), "currency": "DOLLAR"}),
        ("period", {"amount": Decimal(1), "period": "year"}),
    ],
)
def test_a_budget_that_makes_no_sense_names_the_field(
    actor: Actor, field: str, values: dict[str, object]
) -> None:
    scope = quotas.Scope(key_id=ApiKeyFactory.create().pk)
    budget_set = partial(quotas.budget_set, actor=actor, scope=scope, period="month")

    with pytest.raises(InvalidRequestError) as error:
        budget_set(**values)  # type: ignore[arg-type]  # wrong on purpose

    assert field in error.value.fields


def test_a_limit_holds_for_exactly_one_thing_that_exists(actor: Actor) -> None:
    key = ApiKeyFactory.create()
    limit_set = partial(quotas.limit_set, actor=actor, kind="rpm", value=1)

    for scope in ({}, {"key_id": None}, {"key_id": key.pk, "team_id": key.team_id}):
        with pytest.raises(InvalidRequestError, match="exactly one"):
            limit_set(scope=scope)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(NotFoundError, match="no API key 404"):
        limit_set(scope={"key_id": 404})
    with pytest.raises(NotFoundError, match="no limit 404"):
        quotas.limit_clear(actor=actor, limit_id=404)


def test_a_viewer_may_set_and_lift_nothing(viewer: User) -> None:
    actor = Actor(user=viewer, label="viewer")
    key = ApiKeyFactory.create()
    limit, budget = LimitFactory.create(key=key), BudgetFactory.create(key=key)
    actions: list[Callable[..., object]] = [
        partial(quotas.limit_set, scope={"key_id": key.pk}, kind="tpm", value=1),
        partial(quotas.limit_clear, limit_id=limit.pk),
        partial(quotas.budget_set, scope={"key_id": key.pk}, period="day", amount=Decimal(1)),
        partial(quotas.budget_clear, budget_id=budget.pk),
    ]

    for action in actions:
        with pytest.raises(PermissionDeniedError):
            action(actor=actor)

    assert (Limit.objects.count(), Budget.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_a_limit_set_by_two_at_once_is_one_limit() -> None:
    key = ApiKeyFactory.create()
    scope = quotas.Scope(key_id=key.pk)
    standing = LimitFactory.create(key=key, kind="tpm")
    limit_set = partial(quotas.limit_set, actor=SYSTEM, scope=scope)

    at_once([partial(limit_set, kind="rpm", value=value) for value in (1, 2, 3, 4)])
    at_once(
        [
            partial(limit_set, kind="tpm", value=5),
            partial(quotas.limit_clear, actor=SYSTEM, limit_id=standing.pk),
        ]
    )

    assert Limit.objects.filter(key=key, kind="rpm").count() == 1
    assert Limit.objects.filter(key=key, kind="tpm").count() <= 1


MOMENTS = [
    # Midnight of the installation's zone, also on the days when clocks are set.
    ("Asia/Kolkata", "day", "2026-12-01T03:00Z", "2026-11-30T18:30Z", "2026-12-01T18:30Z"),
    ("America/New_York", "day", "2026-03-08T12:00Z", "2026-03-08T05:00Z", "2026-03-09T04:00Z"),
    ("America/New_York", "day", "2026-11-01T12:00Z", "2026-11-01T04:00Z", "2026-11-02T05:00Z"),
    ("UTC", "hour", "2026-12-01T03:59Z", "2026-12-01T03:00Z", "2026-12-01T04:00Z"),
    ("UTC", "week", "2026-12-01T03:00Z", "2026-11-30T00:00Z", "2026-12-07T00:00Z"),
    ("UTC", "month", "2026-12-31T23:59Z", "2026-12-01T00:00Z", "2027-01-01T00:00Z"),
    ("Europe/Berlin", "month", "2026-02-28T23:30Z", "2026-02-28T23:00Z", "2026-03-31T22:00Z"),
]


@pytest.mark.parametrize(("zone", "period", "moment", "start", "end"), MOMENTS)
def test_periods_begin_at_local_midnight(
    settings: Settings, zone: str, period: str, moment: str, start: str, end: str
) -> None:
    settings.TIME_ZONE = zone

    window = window_of(Budget(period=period), datetime.fromisoformat(moment))

    assert window.start == datetime.fromisoformat(start)
    assert window.end == datetime.fromisoformat(end)


def test_a_budget_without_a_period_never_starts_anew() -> None:
    made = datetime(2026, 1, 1, tzinfo=UTC)

    window = window_of(Budget(period="never", created_at=made), datetime(2030, 1, 1, tzinfo=UTC))

    assert (window.start, window.end) == (made, None)


@pytest.mark.parametrize(
    ("schedule", "moment", "start", "end"),
    [
        # A week that begins on Sunday, at local midnight, over the night when clocks are set.
        (
            {"period": "week", "week_start": 6, "time_zone": "America/New_York"},
            "2026-03-10T12:00Z",
            "2026-03-08T05:00Z",
            "2026-03-15T04:00Z",
        ),
        # First use at 17:00: fresh at the next local midnight, not 24 hours later.
        (
            {"period": "day", "time_zone": "Asia/Kolkata"},
            "2026-12-01T11:30Z",
            "2026-11-30T18:30Z",
            "2026-12-01T18:30Z",
        ),
        (
            {"period": "hour", "time_zone": "Asia/Kolkata"},
            "2026-12-01T11:20Z",
            "2026-12-01T10:30Z",
            "2026-12-01T11:30Z",
        ),
        # The hour that comes twice begins twice.
        (
            {"period": "hour", "time_zone": "Europe/Berlin"},
            "2026-10-25T01:10Z",
            "2026-10-25T01:00Z",
            "2026-10-25T02:00Z",
        ),
        (
            {"period": "day", "time_zone": "UTC", "reset_at": "2026-12-01T10:00Z"},
            "2026-12-01T12:00Z",
            "2026-12-01T10:00Z",
            "2026-12-02T00:00Z",
        ),
        (
            {"period": "day", "time_zone": "UTC", "reset_at": "2026-11-30T10:00Z"},
            "2026-12-01T12:00Z",
            "2026-12-01T00:00Z",
            "2026-12-02T00:00Z",
        ),
    ],
)
def test_a_budget_runs_in_its_own_zone_and_week(
    schedule: dict[str, object], moment: str, start: str, end: str
) -> None:
    reset_at = schedule.pop("reset_at", None)
    budget = Budget(**schedule)
    budget.reset_at = datetime.fromisoformat(str(reset_at)) if reset_at else None

    window = window_of(budget, datetime.fromisoformat(moment))

    assert window.start == datetime.fromisoformat(start)
    assert window.end == datetime.fromisoformat(end)


def test_a_raise_and_a_reset_leave_a_trace_on_the_holder(actor: Actor) -> None:
    key = ApiKeyFactory.create()
    budget = BudgetFactory.create(key=key, amount=10)
    until = datetime(2100, 1, 1, tzinfo=UTC)

    quotas.budget_raise(actor=actor, budget_id=budget.pk, amount=Decimal(15), until=until)
    raised = quotas.budget_reset(actor=actor, budget_id=budget.pk)
    ended = quotas.budget_raise_end(actor=actor, budget_id=budget.pk)

    assert raised.amount_at(until.replace(year=2099)) == 15
    assert raised.amount_at(until) == 10
    assert (ended.raised_amount, ended.raised_until) == (None, None)
    assert ended.reset_at is not None
    assert [entry.action for entry in history_of(key)] == [
        "budget.raise_end",
        "budget.reset",
        "budget.raise",
    ]


@pytest.mark.parametrize(
    ("field", "amount", "until"),
    [("amount", 10, "2100-01-01T00:00Z"), ("until", 11, "2020-01-01T00:00Z")],
)
def test_a_raise_that_raises_nothing_names_the_field(
    actor: Actor, field: str, amount: int, until: str
) -> None:
    budget = BudgetFactory.create(key=ApiKeyFactory.create(), amount=10)

    with pytest.raises(InvalidRequestError) as error:
        quotas.budget_raise(
            actor=actor,
            budget_id=budget.pk,
            amount=Decimal(amount),
            until=datetime.fromisoformat(until),
        )

    assert list(error.value.fields) == [field]

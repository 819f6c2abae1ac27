"""Setting prices and taking them back."""

from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from apps.billing.models import Price
from apps.billing.selectors import prices_now
from apps.billing.services.prices import Rates, price_set, price_withdraw
from apps.core.actors import Actor
from apps.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from apps.core.models import AuditEntry, User
from tests.factories import PriceFactory, ServerFactory


def _rates(input_price: str = "1", output_price: str = "2", **others: Any) -> Rates:
    rates = Rates(
        input_per_million=Decimal(input_price),
        output_per_million=Decimal(output_price),
    )
    return rates | others  # type: ignore[return-value]  # some tests break the shape on purpose


def test_a_price_holds_from_its_moment_on(actor: Actor) -> None:
    server, now = ServerFactory.create(), timezone.now()
    set_price = partial(price_set, actor=actor, server_id=server.pk, upstream_model="llama")

    set_price(rates=_rates("1"))
    set_price(rates=_rates("3"), effective_from=now + timedelta(days=1))

    key = (server.pk, "llama")
    assert prices_now(timezone.now())[key].input_picos == 1_000_000
    assert prices_now(now + timedelta(days=2))[key].input_picos == 3_000_000
    assert AuditEntry.objects.filter(action="price.set").count() == 2


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("input_per_million", {"rates": _rates("-1")}),
        ("output_per_million", {"rates": _rates("1", "1000001")}),
        ("input_per_million", {"rates": _rates("NaN")}),
        ("per_request", {"rates": _rates(per_request=Decimal("1e30"))}),
        ("cached_input_per_million", {"rates": _rates(cached_input_per_million=Decimal(-1))}),
        ("input_per_million", {"rates": _rates("0.0000001")}),
        ("currency", {"currency": "¥"}),
        ("upstream_model", {"upstream_model": " "}),
        ("upstream_model", {"upstream_model": "x" * 201}),
        ("effective_from", {"effective_from": timezone.now() - timedelta(days=1)}),
    ],
)
def test_a_price_that_makes_no_sense_names_the_field(
    actor: Actor, field: str, values: dict[str, Any]
) -> None:
    arguments: dict[str, Any] = {"upstream_model": "llama", "rates": _rates()} | values

    with pytest.raises(InvalidRequestError) as error:
        price_set(actor=actor, server_id=ServerFactory.create().pk, allows_jump=True, **arguments)

    assert field in error.value.fields
    assert Price.objects.count() == 0


def test_a_price_a_hundred_times_the_last_asks_for_a_confirmation(actor: Actor) -> None:
    old = PriceFactory.create(input_per_million=Decimal("0.15"))
    set_price = partial(
        price_set, actor=actor, server_id=old.server_id, upstream_model=old.upstream_model
    )

    with pytest.raises(ConflictError) as error:
        set_price(rates=_rates("150"))
    set_price(rates=_rates("150"), allows_jump=True)

    assert error.value.code == "price_jump"
    assert Price.objects.count() == 2


def test_two_prices_from_the_same_moment_conflict(actor: Actor) -> None:
    moment = timezone.now() + timedelta(hours=1)
    server = ServerFactory.create()
    set_price = partial(
        price_set,
        actor=actor,
        server_id=server.pk,
        upstream_model="llama",
        rates=_rates(),
        effective_from=moment,
    )

    set_price()
    with pytest.raises(ConflictError, match="from this moment already"):
        set_price()


def test_only_a_price_to_come_is_taken_back(actor: Actor) -> None:
    begun = PriceFactory.create()
    to_come = PriceFactory.create(effective_from=timezone.now() + timedelta(days=1))

    with pytest.raises(ConflictError):
        price_withdraw(actor=actor, price_id=begun.pk)
    price_withdraw(actor=actor, price_id=to_come.pk)

    assert list(Price.objects.all()) == [begun]


def test_a_price_needs_a_server_that_exists(actor: Actor) -> None:
    with pytest.raises(NotFoundError, match="no server 404"):
        price_set(actor=actor, server_id=404, upstream_model="llama", rates=_rates())


def test_a_viewer_and_an_operator_may_not_touch_prices(viewer: User, operator: User) -> None:
    price = PriceFactory.create(effective_from=timezone.now() + timedelta(days=1))

    for user in (viewer, operator):
        actor = Actor(user=user, label=user.username)
        with pytest.raises(PermissionDeniedError):
            price_set(actor=actor, server_id=price.server_id, upstream_model="x", rates=_rates())
        with pytest.raises(PermissionDeniedError):
            price_withdraw(actor=actor, price_id=price.pk)

    assert list(Price.objects.all()) == [price]

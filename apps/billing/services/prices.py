"""Actions on prices. A price that has begun is never changed: requests refer to it."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import NotRequired, TypedDict

from django.db import transaction
from django.utils import timezone

from apps.billing.models import RATES, Price
from apps.billing.selectors import PRICE_JUMP, price_jump_of
from apps.core import live
from apps.core.actors import Actor
from apps.core.audit import audit_write
from apps.core.changes import announce_on_commit
from apps.core.errors import ConflictError, InvalidRequestError
from apps.core.roles import Permission
from apps.core.rows import row_insert, row_locked
from apps.fleet.models import Server

# "From now on" may have been typed a few minutes ago.
_PAST_ALLOWED = timedelta(minutes=15)


class Rates(TypedDict):
    """What a price consists of; a part that is `None` or left out costs what its whole does."""

    input_per_million: Decimal
    output_per_million: Decimal
    cached_input_per_million: NotRequired[Decimal | None]
    cache_write_per_million: NotRequired[Decimal | None]
    reasoning_per_million: NotRequired[Decimal | None]
    per_request: NotRequired[Decimal]
    per_image: NotRequired[Decimal]
    per_compute_second: NotRequired[Decimal]


@transaction.atomic
def price_set(
    *,
    actor: Actor,
    server_id: int,
    upstream_model: str,
    rates: Rates,
    currency: str = "USD",
    effective_from: datetime | None = None,
    allows_jump: bool = False,
) -> Price:
    """Price of a model on a server from a moment on (now, when `None`); what is billed stays.

    Raises InvalidRequestError for rates out of bounds or a moment in the past, ConflictError when
    there is a price from that moment, and with the code `price_jump` when a rate is more than a
    hundred times the one that holds, unless `allows_jump`.
    """
    actor.require(Permission.MANAGE_KEYS)
    server = row_locked(Server, server_id)
    now = timezone.now()
    if effective_from is not None and effective_from < now - _PAST_ALLOWED:
        raise InvalidRequestError.of(
            "effective_from", "what is billed stays; give a moment to come"
        )
    price = Price(
        server=server,
        upstream_model=upstream_model.strip(),
        currency=currency,
        effective_from=effective_from or now,
        **rates,
    )
    if not allows_jump:
        _require_no_jump(price)
    row_insert(price)
    audit_write(actor=actor, action="price.set", target=price, after=_facts(price))
    _announce(price)
    return price


@transaction.atomic
def price_withdraw(*, actor: Actor, price_id: int) -> None:
    """Take back a price that has not begun; raises ConflictError for one that has."""
    actor.require(Permission.MANAGE_KEYS)
    price = row_locked(Price, price_id)
    if price.effective_from <= timezone.now():
        raise ConflictError("this price holds or held already; set a new one instead")
    audit_write(actor=actor, action="price.withdraw", target=price, before=_facts(price))
    _announce(price)
    price.delete()


def _require_no_jump(price: Price) -> None:
    name = price_jump_of(price)
    if name is not None:
        raise ConflictError(
            f"{name}: {getattr(price, name)} is over {PRICE_JUMP} times the price that holds; "
            "prices are per million tokens. Confirm it, if it is meant",
            code="price_jump",
        )


def _facts(price: Price) -> dict[str, object]:
    return {name: getattr(price, name) for name in ("currency", *RATES, "effective_from")}


def _announce(price: Price) -> None:
    live.changed_on_commit("price", price.pk, server_id=price.server_id)
    announce_on_commit("config")

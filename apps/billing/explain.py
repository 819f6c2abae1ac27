"""Why a request cost what it cost, line by line."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.billing.models import Price, UsageRecord
from apps.billing.pricing import Quantities, parts_of
from apps.billing.selectors import rates_of

MILLION = Decimal(10**6)


@dataclass(frozen=True, slots=True)
class CostLine:
    """`quantity` times `rate`, per `per` of them (a million tokens, or one request), = `amount`."""

    label: Promise
    quantity: int | Decimal
    rate: Decimal
    per: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Derivation:
    """The lines of a cost, their sum, and whether that is what the ledger holds.

    `agrees` is False when the price row was changed after the request: the ledger's sum holds.
    `is_waived`: nobody answered, and what nobody answered costs nothing.
    """

    lines: list[CostLine]
    total: Decimal
    currency: str
    agrees: bool
    is_waived: bool


def cost_derivation(record: UsageRecord) -> Derivation | None:
    """How the record's cost follows from its tokens and price; `None` without a price."""
    price, total = record.price, record.cost
    if price is None or total is None:
        return None
    lines = list(_lines(record, price))
    return Derivation(
        lines=lines,
        total=total,
        currency=record.currency,
        agrees=sum((line.amount for line in lines), Decimal(0)) == total,
        is_waived=record.status == UsageRecord.Status.ERROR and not total,
    )


def _lines(record: UsageRecord, price: Price) -> Iterator[CostLine]:
    """Lines that count; a request without tokens still has its input line."""
    cached, written, reasoning = parts_of(quantities_of(record))
    rates = rates_of(price)
    plain = record.input_tokens - cached - written
    yield _tokens(_("input"), plain, price.input_per_million)
    if cached:
        yield _tokens(_("cached input"), cached, rates.cached_input)
    if written:
        yield _tokens(_("cache write"), written, rates.cache_write)
    yield _tokens(_("output"), record.output_tokens - reasoning, price.output_per_million)
    if reasoning:
        yield _tokens(_("reasoning"), reasoning, rates.reasoning)
    if price.per_request:
        yield _each(_("request"), 1, price.per_request)
    if price.per_image and record.images:
        yield _each(_("images"), record.images, price.per_image)
    if price.per_compute_second:
        seconds = Decimal(record.compute_microseconds) / MILLION
        yield _each(_("seconds of compute"), seconds, price.per_compute_second)


def quantities_of(record: UsageRecord) -> Quantities:
    """What the record says was used."""
    return Quantities(**{field.name: getattr(record, field.name) for field in fields(Quantities)})


def _each(label: Promise, quantity: int | Decimal, rate: Decimal) -> CostLine:
    return CostLine(label, quantity, rate, 1, quantity * rate)


def _tokens(label: Promise, tokens: int, rate: Decimal) -> CostLine:
    return CostLine(label, tokens, rate, 10**6, tokens * rate / MILLION)

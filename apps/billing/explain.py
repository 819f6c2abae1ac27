"""Why a request cost what it cost, line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.billing.models import Price, UsageRecord

MILLION = Decimal(10**6)


@dataclass(frozen=True, slots=True)
class CostLine:
    """`quantity` times `rate`, per `per` of them (a million tokens, or one request), = `amount`."""

    label: Promise
    quantity: int
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
    cached = min(record.cached_input_tokens, record.input_tokens)
    cached_rate = price.cached_input_per_million
    if cached_rate is None:
        cached_rate = price.input_per_million
    yield _tokens(_("input"), record.input_tokens - cached, price.input_per_million)
    if cached:
        yield _tokens(_("cached input"), cached, cached_rate)
    yield _tokens(_("output"), record.output_tokens, price.output_per_million)
    if price.per_request:
        yield CostLine(_("request"), 1, price.per_request, 1, price.per_request)


def _tokens(label: Promise, tokens: int, rate: Decimal) -> CostLine:
    return CostLine(label, tokens, rate, 10**6, tokens * rate / MILLION)

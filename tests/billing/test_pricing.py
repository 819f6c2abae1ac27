"""Prices of requests, exact to the pico-unit."""

from decimal import Decimal

import pytest

from apps.billing.models import UsageRecord
from apps.billing.pricing import MAX_COST_PICOS, PriceRow, cost_picos
from apps.core.money import from_picos

PRICE = PriceRow(
    id=1,
    currency="USD",
    input_picos=2_500_000,  # 2.50 a million
    output_picos=10_000_000,
    cached_input_picos=1_250_000,
    request_picos=0,
)


def _cost(input_tokens: int, cached: int, output: int, price: PriceRow = PRICE) -> int:
    return cost_picos(
        price, input_tokens=input_tokens, cached_input_tokens=cached, output_tokens=output
    )


def test_input_and_output_are_priced_by_the_token() -> None:
    assert from_picos(_cost(1000, 0, 500)) == Decimal("0.0075")


def test_the_cached_part_is_charged_once_at_its_own_price() -> None:
    # 60 at 2.50 + 40 at 1.25 a million.
    assert _cost(100, 40, 0) == 60 * 2_500_000 + 40 * 1_250_000


@pytest.mark.parametrize(("given", "same_as"), [((100, 250, 0), (100, 100, 0)),
                                                ((100, -5, 0), (100, 0, 0)),
                                                ((-7, 3, -2), (0, 0, 0))])  # fmt: skip
def test_absurd_counts_never_give_a_refund(
    given: tuple[int, int, int], same_as: tuple[int, int, int]
) -> None:
    assert _cost(*given) == _cost(*same_as) >= 0


def test_a_request_price_is_added_once() -> None:
    per_call = PriceRow(2, "EUR", 0, 0, 0, request_picos=3_000_000_000)

    assert from_picos(_cost(10_000, 0, 10_000, per_call)) == Decimal("0.003")


def test_a_thousand_tiny_requests_sum_exactly() -> None:
    tiny = PriceRow(3, "USD", 1_300_000, 0, 0, 0)

    assert from_picos(sum(_cost(1, 0, 0, tiny) for _ in range(1000))) == Decimal("0.0013")


def test_a_cost_fits_its_column_whatever_a_server_reports() -> None:
    largest = UsageRecord._meta.get_field("cost_picos")

    assert _cost(10**30, 0, 10**30) == MAX_COST_PICOS < 2**63
    assert largest.get_internal_type() == "BigIntegerField"

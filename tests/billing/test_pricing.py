"""Prices of requests, exact to the pico-unit."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.billing.models import UsageRecord
from apps.billing.pricing import MAX_COST_PICOS, PriceRow, Quantities, cost_picos, worst_cost_picos
from apps.core.money import from_picos

PRICE = PriceRow(
    id=1,
    currency="USD",
    input_picos=2_500_000,  # 2.50 a million
    output_picos=10_000_000,
    cached_input_picos=1_250_000,
    cache_write_picos=3_125_000,
    reasoning_picos=12_000_000,
)


def _cost(input_tokens: int, cached: int, output: int, price: PriceRow = PRICE) -> int:
    return cost_picos(price, Quantities(input_tokens, output, cached_input_tokens=cached))


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
    per_call = PriceRow(2, "EUR", 0, 0, 0, 0, 0, request_picos=3_000_000_000)

    assert from_picos(_cost(10_000, 0, 10_000, per_call)) == Decimal("0.003")


def test_a_thousand_tiny_requests_sum_exactly() -> None:
    tiny = PriceRow(3, "USD", 1_300_000, 0, 0, 0, 0)

    assert from_picos(sum(_cost(1, 0, 0, tiny) for _ in range(1000))) == Decimal("0.0013")


def test_a_cost_fits_its_column_whatever_a_server_reports() -> None:
    largest = UsageRecord._meta.get_field("cost_picos")

    assert _cost(10**30, 0, 10**30) == MAX_COST_PICOS < 2**63
    assert largest.get_internal_type() == "BigIntegerField"


def test_each_part_is_charged_once_at_its_own_price() -> None:
    used = Quantities(
        100, 50, cached_input_tokens=40, cache_write_tokens=30, reasoning_tokens=20, images=2,
        compute_microseconds=1_500_000,
    )  # fmt: skip
    price = replace(PRICE, request_picos=7, image_picos=1_000, compute_microsecond_picos=3)

    assert cost_picos(price, used) == (
        30 * 2_500_000 + 40 * 1_250_000 + 30 * 3_125_000  # the prompt
        + 30 * 10_000_000 + 20 * 12_000_000  # the completion
        + 7 + 2 * 1_000 + 1_500_000 * 3
    )  # fmt: skip


def test_parts_beyond_their_whole_are_cut() -> None:
    used = Quantities(
        10, 5, cached_input_tokens=8, cache_write_tokens=8, reasoning_tokens=50, images=-1
    )

    assert cost_picos(PRICE, used) == 8 * 1_250_000 + 2 * 3_125_000 + 5 * 12_000_000


@given(
    st.builds(
        Quantities,
        input_tokens=st.integers(0, 10**6),
        output_tokens=st.integers(0, 10**6),
        cached_input_tokens=st.integers(-5, 10**7),
        cache_write_tokens=st.integers(-5, 10**7),
        reasoning_tokens=st.integers(-5, 10**7),
        images=st.integers(0, 50),
        compute_microseconds=st.integers(0, 10**9),
    ),
    st.lists(st.integers(0, 10**8), min_size=8, max_size=8),
)
def test_what_is_held_covers_whatever_the_parts_turn_out_to_be(
    used: Quantities, rates: list[int]
) -> None:
    price = PriceRow(1, "USD", *rates)
    most = Quantities(
        used.input_tokens,
        used.output_tokens,
        images=used.images,
        compute_microseconds=used.compute_microseconds,
    )

    assert 0 <= cost_picos(price, used) <= worst_cost_picos(price, most)

"""What a request costs: integers only, in pico-units (10⁻¹²) of the price's currency."""

from dataclasses import dataclass

from apps.core.money import PICOS

# Nine million, the largest budget too: what the gateway adds up always fits 64 bits.
MAX_COST_PICOS = 9_000_000 * PICOS


@dataclass(frozen=True, slots=True)
class Quantities:
    """What a request used, as far as it costs.

    `input_tokens` is the whole prompt: what was read from a cache and what was written to one are
    parts of it. `output_tokens` is the whole completion, its reasoning included. `images`: images
    in the prompt. `compute_microseconds`: time that the model itself took, where a server tells it.
    """

    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    images: int = 0
    compute_microseconds: int = 0


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A price as the gateway holds it: pico-units a token, and a request."""

    id: int
    currency: str
    input_picos: int
    output_picos: int
    cached_input_picos: int
    request_picos: int


def cost_picos(
    price: PriceRow, *, input_tokens: int, cached_input_tokens: int, output_tokens: int
) -> int:
    """Exact cost of a request; between 0 and MAX_COST_PICOS whatever a server reports.

    `input_tokens` is the whole prompt, its cached part included. A cached part that is larger than
    the prompt is taken for all of it, a negative count for none.
    """
    prompt = max(0, input_tokens)
    cached = min(max(0, cached_input_tokens), prompt)
    total = (
        (prompt - cached) * price.input_picos
        + cached * price.cached_input_picos
        + max(0, output_tokens) * price.output_picos
        + price.request_picos
    )
    return min(total, MAX_COST_PICOS)

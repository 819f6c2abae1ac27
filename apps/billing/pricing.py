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
    in the prompt. `compute_microseconds`: time that the target was busy with the request.
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
    """A price as the gateway holds it: pico-units a token, request, image and microsecond."""

    id: int
    currency: str
    input_picos: int
    output_picos: int
    cached_input_picos: int
    cache_write_picos: int
    reasoning_picos: int
    request_picos: int = 0
    image_picos: int = 0
    compute_microsecond_picos: int = 0


def cost_picos(price: PriceRow, used: Quantities) -> int:
    """Exact cost of a request; between 0 and MAX_COST_PICOS whatever a server reports.

    A part that is larger than what is left of its whole is taken for all of that, a negative count
    for none: a cost is never below zero.
    """
    prompt, output = max(0, used.input_tokens), max(0, used.output_tokens)
    cached, written, reasoning = parts_of(used)
    total = (
        (prompt - cached - written) * price.input_picos
        + cached * price.cached_input_picos
        + written * price.cache_write_picos
        + (output - reasoning) * price.output_picos
        + reasoning * price.reasoning_picos
        + price.request_picos
        + max(0, used.images) * price.image_picos
        + max(0, used.compute_microseconds) * price.compute_microsecond_picos
    )
    return min(total, MAX_COST_PICOS)


def parts_of(used: Quantities) -> tuple[int, int, int]:
    """Tokens read from a cache, written to one, and of reasoning: none exceeds its whole."""
    prompt = max(0, used.input_tokens)
    cached = min(max(0, used.cached_input_tokens), prompt)
    written = min(max(0, used.cache_write_tokens), prompt - cached)
    reasoning = min(max(0, used.reasoning_tokens), max(0, used.output_tokens))
    return cached, written, reasoning


def worst_cost_picos(price: PriceRow, most: Quantities) -> int:
    """The dearest that a request of at most these quantities can become, whatever their parts."""
    dearest_input = max(price.input_picos, price.cached_input_picos, price.cache_write_picos)
    total = (
        most.input_tokens * dearest_input
        + most.output_tokens * max(price.output_picos, price.reasoning_picos)
        + price.request_picos
        + most.images * price.image_picos
        + most.compute_microseconds * price.compute_microsecond_picos
    )
    return min(total, MAX_COST_PICOS)

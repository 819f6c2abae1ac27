"""What usage of each provider's shape costs, to the pico-unit: each token once, at its own rate."""

from decimal import Decimal
from typing import Any

from apps.billing.explain import cost_derivation
from apps.billing.models import Price, UsageRecord
from apps.billing.pricing import PriceRow, cost_picos
from apps.billing.services.ledger import ledger_drain
from apps.core.money import from_picos
from apps.fleet.models import Server
from apps.gateway.usage import (
    Usage,
    merged_anthropic,
    usage_from_anthropic,
    usage_from_gemini,
    usage_from_openai,
    usage_from_responses,
)
from apps.keys.models import ApiKey
from apps.routes.models import Route
from tests.factories import BudgetFactory
from tests.gateway.conftest import HELLO_COST, Events, Serve

# Per million: input 3, output 15, cached read 0.30, cache write 3.75, reasoning 20.
PRICE = PriceRow(
    id=1,
    currency="USD",
    input_picos=3_000_000,
    output_picos=15_000_000,
    cached_input_picos=300_000,
    cache_write_picos=3_750_000,
    reasoning_picos=20_000_000,
)


def _costs(usage: Usage | None, amount: str) -> None:
    assert usage is not None
    assert from_picos(cost_picos(PRICE, usage)) == Decimal(amount)


def test_openai_chat_counts_the_cached_part_and_the_reasoning_inside() -> None:
    raw = {
        "prompt_tokens": 1000,
        "completion_tokens": 500,
        "total_tokens": 1500,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 100},
    }

    _costs(usage_from_openai(raw), "0.00992")  # 600 x 3 + 400 x 0.3 + 400 x 15 + 100 x 20


def test_openai_cache_writes_are_inside_the_prompt() -> None:
    raw = {
        "prompt_tokens": 100,
        "completion_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 30},
    }

    _costs(usage_from_openai(raw), "0.0002145")  # 30 x 3 + 40 x 0.3 + 30 x 3.75


def test_openai_responses_cost_what_the_same_chat_does() -> None:
    raw = {
        "input_tokens": 1000,
        "output_tokens": 500,
        "input_tokens_details": {"cached_tokens": 400},
        "output_tokens_details": {"reasoning_tokens": 100},
    }

    _costs(usage_from_responses(raw), "0.00992")


ANTHROPIC: dict[str, Any] = {
    "input_tokens": 50,
    "cache_creation_input_tokens": 2000,
    "cache_read_input_tokens": 10_000,
    "output_tokens": 300,
}


def test_anthropic_reads_and_writes_stand_beside_the_input() -> None:
    # 50 x 3 + 2000 x 3.75 + 10000 x 0.3 + 300 x 15
    _costs(usage_from_anthropic(ANTHROPIC), "0.01515")


def test_anthropic_streamed_costs_what_the_whole_answer_does() -> None:
    start = {**ANTHROPIC, "output_tokens": 1}

    _costs(merged_anthropic(start, {"output_tokens": 300}), "0.01515")


def test_gemini_counts_the_cached_part_inside_and_the_thoughts_outside() -> None:
    raw = {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 800,
        "candidatesTokenCount": 100,
        "thoughtsTokenCount": 50,
        "totalTokenCount": 1150,
    }

    _costs(usage_from_gemini(raw), "0.00334")  # 200 x 3 + 800 x 0.3 + 100 x 15 + 50 x 20


def test_deepseek_names_hits_and_misses() -> None:
    raw = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_cache_hit_tokens": 900,
        "prompt_cache_miss_tokens": 100,
    }

    _costs(usage_from_openai(raw), "0.00207")  # 100 x 3 + 900 x 0.3 + 100 x 15


def test_more_cached_than_prompt_never_gives_money_back() -> None:
    raw = {
        "prompt_tokens": 10,
        "completion_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 500},
    }

    _costs(usage_from_openai(raw), "0.000003")


def test_images_and_seconds_are_counted_by_the_gateway_and_written_to_the_ledger(
    serve: Serve, key: ApiKey, upstream: Server, route: Route, events: Events
) -> None:
    Price.objects.update(per_image=Decimal("0.01"), per_compute_second=Decimal("0.5"))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "What?"}, picture, picture]}]

    assert serve().chat(messages=messages).status_code == 200

    event = events.only()
    micros = event["compute_microseconds"]
    assert micros == round(event["attempts"][0]["seconds"] * 10**6) > 0
    assert event["images"] == 2
    assert event["cost_picos"] == HELLO_COST + 2 * 10**10 + micros * 500_000
    ledger_drain(seconds=5)
    record = UsageRecord.objects.get()
    derivation = cost_derivation(record)
    assert (record.images, record.compute_microseconds) == (2, micros)
    assert derivation is not None
    assert derivation.agrees
    assert [str(line.label) for line in derivation.lines] == [
        "input", "output", "images", "seconds of compute",
    ]  # fmt: skip


def test_a_budget_that_cannot_bear_the_seconds_of_the_whole_timeout_is_not_overrun(
    serve: Serve, key: ApiKey, upstream: Server, route: Route, events: Events
) -> None:
    Price.objects.update(per_compute_second=Decimal(1))
    Route.objects.update(total_timeout_seconds=30)
    BudgetFactory.create(key=key, amount=Decimal(20))

    response = serve().chat()

    assert response.status_code == 429
    assert response.json()["error"]["code"] == "budget_exceeded"
    assert events.all() == []

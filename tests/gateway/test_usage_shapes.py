"""Usage as vendors tell it, what it means, and what it costs to the pico-unit."""

from typing import Any

import pytest

from apps.gateway.usage import (
    Usage,
    merged_anthropic,
    usage_from_anthropic,
    usage_from_gemini,
    usage_from_openai,
    usage_from_responses,
)

OPENAI = [
    ({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}, Usage(7, 2)),
    (
        {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 30},
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        Usage(100, 50, cached_input_tokens=40, cache_write_tokens=30, reasoning_tokens=20),
    ),
    # DeepSeek
    (
        {
            "prompt_tokens": 30,
            "completion_tokens": 5,
            "prompt_cache_hit_tokens": 20,
            "prompt_cache_miss_tokens": 10,
        },
        Usage(30, 5, cached_input_tokens=20),
    ),
    # Embeddings have no completion.
    ({"prompt_tokens": 8, "total_tokens": 8}, Usage(8, 0)),
    ({"prompt_tokens": 8}, Usage(8, 0)),
    ({"completion_tokens": 8}, Usage(0, 8, is_estimated=True)),
    # A part that is larger than its whole: cut, and flagged.
    (
        {
            "prompt_tokens": 10,
            "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 50},
        },
        Usage(10, 1, cached_input_tokens=10, is_estimated=True),
    ),
]


@pytest.mark.parametrize(("raw", "expected"), OPENAI)
def test_openai_counts_parts_within_wholes(raw: dict[str, Any], expected: Usage) -> None:
    assert usage_from_openai(raw) == expected


@pytest.mark.parametrize(
    "raw", [None, [], "7", {}, {"prompt_tokens": "7"}, {"prompt_tokens": -1}, {"total_tokens": 1.5}]
)
def test_what_is_no_usage_is_told_apart(raw: object) -> None:
    assert usage_from_openai(raw) is None


def test_responses_have_names_of_their_own() -> None:
    raw = {
        "input_tokens": 36,
        "input_tokens_details": {"cached_tokens": 10},
        "output_tokens": 87,
        "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": 123,
    }

    usage = usage_from_responses(raw)

    assert usage == Usage(36, 87, cached_input_tokens=10, reasoning_tokens=64)
    assert usage.to_responses() == raw


def test_anthropic_counts_the_cache_beside_the_input() -> None:
    raw = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 5,
    }

    usage = usage_from_anthropic(raw)

    assert usage == Usage(3210, 5, cached_input_tokens=3000, cache_write_tokens=200)
    assert usage.to_anthropic() == raw


def test_an_anthropic_stream_tells_running_totals_twice() -> None:
    start = {"input_tokens": 25, "cache_read_input_tokens": 100, "output_tokens": 1}

    assert merged_anthropic(start, {"output_tokens": 15}) == Usage(125, 15, cached_input_tokens=100)
    # Cut before the closing event: only the first tokens were counted.
    assert merged_anthropic(start, None) == Usage(
        125, 1, cached_input_tokens=100, is_estimated=True
    )
    assert merged_anthropic(None, None) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"promptTokenCount": 8, "candidatesTokenCount": 4, "totalTokenCount": 12},
            Usage(8, 4),
        ),
        # The cached part is in the prompt, the thoughts are not among the candidates.
        (
            {
                "promptTokenCount": 1000,
                "cachedContentTokenCount": 900,
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 100,
                "totalTokenCount": 1120,
            },
            Usage(1000, 120, cached_input_tokens=900, reasoning_tokens=100),
        ),
        # All of the answer was thought: Google leaves a count of zero out.
        (
            {"promptTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 12},
            Usage(5, 7, reasoning_tokens=7),
        ),
    ],
)
def test_gemini_counts_thoughts_beside_the_candidates(raw: dict[str, Any], expected: Usage) -> None:
    assert usage_from_gemini(raw) == expected

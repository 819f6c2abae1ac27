"""Token counts of a request, and how they are read out of an OpenAI-shaped answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens used; `input_tokens` is the whole prompt, its cached part included."""

    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    # True where a server did not count and the figures are our guess.
    is_estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.input_tokens + self.output_tokens

    def to_openai(self) -> dict[str, Any]:
        """As in OpenAI's answers."""
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
        }


def usage_from_openai(raw: object) -> Usage | None:
    """Usage of an OpenAI-compatible server; `None` when it tells nothing that can be used.

    Cached tokens stand in `prompt_tokens_details` (OpenAI, vLLM) or `prompt_cache_hit_tokens`
    (DeepSeek). A count that is missing is flagged as estimated.
    """
    if not isinstance(raw, Mapping):
        return None
    prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
    if prompt is None and completion is None:
        return None
    # Embeddings have no completion, and say so by leaving it out.
    is_whole = prompt is not None and (
        completion is not None or raw.get("total_tokens") in (None, prompt)
    )
    return Usage(
        input_tokens=prompt or 0,
        output_tokens=completion or 0,
        cached_input_tokens=min(_cached(raw), prompt or 0),
        is_estimated=not is_whole,
    )


def _cached(raw: Mapping[str, Any]) -> int:
    details = raw.get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return _count(found) or _count(raw.get("prompt_cache_hit_tokens")) or 0


def _count(value: object) -> int | None:
    """A count of tokens; `None` for what is none (text, fractions, negatives, absurdities)."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**40 else None

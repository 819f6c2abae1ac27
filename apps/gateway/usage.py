"""What a request used, read out of the usage that servers tell, and told on to clients.

Formats differ in what contains what. OpenAI's prompt contains what was read from and written to a
cache, and its completion contains the reasoning. Anthropic's input leaves out both parts of the
cache. Gemini's prompt contains the cached part, but its candidates leave out the thoughts, and the
prompt leaves out what tools added. A `Usage` always holds wholes and their parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.billing.pricing import Quantities

_Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage(Quantities):
    """Quantities used, and whether a server counted them.

    `is_estimated`: True where a server did not count and the figures are our guess, in whole or in
    part, and where what it told cannot be (a part that is larger than its whole).
    """

    is_estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.input_tokens + self.output_tokens

    def to_openai(self) -> dict[str, Any]:
        """As in OpenAI's chats, completions and embeddings; details only of what there was."""
        told: dict[str, Any] = {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
        }
        if self.cached_input_tokens or self.cache_write_tokens:
            told["prompt_tokens_details"] = self._input_details()
        if self.reasoning_tokens:
            told["completion_tokens_details"] = {"reasoning_tokens": self.reasoning_tokens}
        return told

    def to_responses(self) -> dict[str, Any]:
        """As in OpenAI's responses, where the details always stand."""
        return {
            "input_tokens": self.input_tokens,
            "input_tokens_details": self._input_details(),
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            "total_tokens": self.input_tokens + self.output_tokens,
        }

    def to_anthropic(self) -> dict[str, Any]:
        """As in Anthropic's messages: input without what the cache took or gave."""
        cached, written = self.cached_input_tokens, self.cache_write_tokens
        told: dict[str, Any] = {
            "input_tokens": max(0, self.input_tokens - cached - written),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": cached,
            "output_tokens": self.output_tokens,
        }
        if self.reasoning_tokens:
            told["output_tokens_details"] = {"thinking_tokens": self.reasoning_tokens}
        return told

    def _input_details(self) -> dict[str, int]:
        details = {"cached_tokens": self.cached_input_tokens}
        if self.cache_write_tokens:
            details["cache_write_tokens"] = self.cache_write_tokens
        return details


def usage_from_openai(raw: object) -> Usage | None:
    """Usage of an OpenAI-compatible server; `None` when it tells nothing that can be used.

    A count that is missing is flagged as estimated. A total alone is taken for a prompt, as
    rerankers tell it.
    """
    if not isinstance(raw, Mapping):
        return None
    prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
    total = _count(raw.get("total_tokens"))
    if prompt is None and completion is None:
        return None if total is None else Usage(total, 0, is_estimated=True)
    # Embeddings have no completion, and say so by leaving it out.
    is_whole = prompt is not None and (completion is not None or total in (None, prompt))
    inputs = _details(raw, "prompt_tokens_details")
    reasoning = _first(_details(raw, "completion_tokens_details"), "reasoning_tokens")
    output = completion or 0
    # xAI counts the reasoning beside the completion: its total tells.
    if reasoning and total == (prompt or 0) + output + reasoning:
        output += reasoning
    return _usage(
        prompt or 0,
        output,
        # OpenAI, vLLM and SGLang; DeepSeek; Moonshot.
        cached=_first(inputs, "cached_tokens")
        or _first(raw, "prompt_cache_hit_tokens", "cached_tokens"),
        written=_first(inputs, "cache_write_tokens"),
        reasoning=reasoning,
        is_whole=is_whole,
    )


def usage_from_responses(raw: object) -> Usage | None:
    """Usage of an answer in the format of OpenAI's responses; `None` when there is none."""
    if not isinstance(raw, Mapping):
        return None
    given, answered = _count(raw.get("input_tokens")), _count(raw.get("output_tokens"))
    if given is None and answered is None:
        return None
    inputs = _details(raw, "input_tokens_details")
    return _usage(
        given or 0,
        answered or 0,
        cached=_first(inputs, "cached_tokens"),
        written=_first(inputs, "cache_write_tokens"),
        reasoning=_first(_details(raw, "output_tokens_details"), "reasoning_tokens"),
        is_whole=given is not None and answered is not None,
    )


def usage_from_anthropic(raw: object) -> Usage | None:
    """Usage of a whole Anthropic message; `None` when it tells nothing that can be used."""
    if not isinstance(raw, Mapping):
        return None
    plain, answered = _count(raw.get("input_tokens")), _count(raw.get("output_tokens"))
    if plain is None and answered is None:
        return None
    cached, written = _first(raw, "cache_read_input_tokens"), _written_by_anthropic(raw)
    return _usage(
        (plain or 0) + cached + written,
        answered or 0,
        cached=cached,
        written=written,
        reasoning=_first(_details(raw, "output_tokens_details"), "thinking_tokens"),
        is_whole=plain is not None and answered is not None,
    )


def merged_anthropic(start: object, delta: object) -> Usage | None:
    """Usage of an Anthropic stream: of its `message_start`, and its last `message_delta` so far.

    Both are running totals: the larger of two counts holds. Without a delta that counts the output
    (`None`, when the stream broke off) it is flagged: only the first tokens were counted.
    """
    first = start if isinstance(start, Mapping) else {}
    last = delta if isinstance(delta, Mapping) else {}
    merged: dict[str, Any] = {**first, **last}
    for name in ("input_tokens", "output_tokens", "cache_read_input_tokens"):
        counts = [count for raw in (first, last) if (count := _count(raw.get(name))) is not None]
        merged[name] = max(counts, default=None)
    merged["cache_creation_input_tokens"] = max(map(_written_by_anthropic, (first, last)))
    found = usage_from_anthropic(merged)
    is_whole = _count(last.get("output_tokens")) is not None
    return found if found is None or is_whole else replace(found, is_estimated=True)


def usage_from_gemini(raw: object) -> Usage | None:
    """Usage of Gemini's `usageMetadata`; in a stream of the last chunk that has it.

    Counts of zero are left out by Google's JSON.
    """
    if not isinstance(raw, Mapping):
        return None
    prompt, total = _count(raw.get("promptTokenCount")), _count(raw.get("totalTokenCount"))
    candidates = _count(raw.get("candidatesTokenCount"))
    if prompt is None and candidates is None:
        return None
    thoughts, tools = _first(raw, "thoughtsTokenCount"), _first(raw, "toolUsePromptTokenCount")
    given, answered = (prompt or 0) + tools, candidates or 0
    # Some releases count the thoughts among the candidates: their total tells.
    if total != given + answered or answered < thoughts:
        answered += thoughts
    return _usage(
        given,
        answered,
        cached=_first(raw, "cachedContentTokenCount"),
        written=0,
        reasoning=thoughts,
        is_whole=prompt is not None and (candidates is not None or total == given + answered),
    )


def _usage(
    given: int, answered: int, *, cached: int, written: int, reasoning: int, is_whole: bool
) -> Usage:
    """A usage whose parts fit into their wholes, flagged where they did not."""
    fits = cached + written <= given and reasoning <= answered
    if not fits:
        cached = min(cached, given)
        written = min(written, given - cached)
        reasoning = min(reasoning, answered)
    return Usage(
        input_tokens=given,
        output_tokens=answered,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
        is_estimated=not (is_whole and fits),
    )


def _written_by_anthropic(raw: _Raw) -> int:
    """Tokens written to the cache; some servers tell them by lifetime only."""
    lifetimes = _details(raw, "cache_creation")
    by_lifetime = sum(
        _first(lifetimes, f"ephemeral_{lifetime}_input_tokens") for lifetime in ("5m", "1h")
    )
    return max(_first(raw, "cache_creation_input_tokens"), by_lifetime)


def _details(raw: _Raw, name: str) -> _Raw:
    """An object within; empty where there is none."""
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}


def _first(raw: _Raw, *names: str) -> int:
    """The first of the counts that is there and not zero; else 0."""
    for name in names:
        count = _count(raw.get(name))
        if count:
            return count
    return 0


def _count(value: object) -> int | None:
    """A count of tokens; `None` for what is none (text, fractions, negatives, absurdities)."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**40 else None

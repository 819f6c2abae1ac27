"""Guesses of token counts, where no server has counted."""

import math
from collections.abc import Iterable
from typing import Any

# English has about four bytes a token, most other text between two and four.
_BYTES_A_TOKEN = 4
# Holds lean to the safe side: too few tokens held would let a budget be overrun.
_BYTES_A_TOKEN_HELD = 3
_TOKENS_A_MESSAGE = 4
_TOKENS_AN_IMAGE = 1100
_TOKENS_OVERHEAD = 3
_IMAGE_PARTS = ("image_url", "input_image", "image")


def tokens_about(size_bytes: int) -> int:
    """Likely tokens of a text of that size; one at least when there is any text."""
    return math.ceil(size_bytes / _BYTES_A_TOKEN)


def prompt_tokens_held(prompt: Any) -> int:
    """Tokens to hold for a `prompt` or `input`: text, texts, token ids or lists of them."""
    if isinstance(prompt, str):
        return math.ceil(len(prompt.encode()) / _BYTES_A_TOKEN_HELD) + 1
    if isinstance(prompt, list):
        if all(isinstance(item, int) for item in prompt):
            return len(prompt)
        return sum(prompt_tokens_held(item) for item in prompt)
    return 0


def message_tokens_held(messages: Iterable[dict[str, Any]], tools: Any) -> int:
    """Tokens to hold for chat messages and the tools described beside them."""
    total = _TOKENS_OVERHEAD
    for message in messages:
        total += _TOKENS_A_MESSAGE + _content_tokens(message.get("content"))
        if "tool_calls" in message:
            total += prompt_tokens_held(str(message["tool_calls"]))
    return total + (prompt_tokens_held(str(tools)) if tools else 0)


def images_in(messages: Iterable[dict[str, Any]]) -> int:
    """Image parts of checked chat messages."""
    return sum(
        part["type"] in _IMAGE_PARTS
        for message in messages
        if isinstance(content := message.get("content"), list)
        for part in content
    )


def _content_tokens(content: Any) -> int:
    if isinstance(content, str):
        return prompt_tokens_held(content)
    if not isinstance(content, list):
        return 0
    return sum(
        prompt_tokens_held(part["text"])
        if isinstance(part, dict) and isinstance(part.get("text"), str)
        else _TOKENS_AN_IMAGE
        for part in content
    )

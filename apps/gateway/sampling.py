"""The sampling parameters that all kinds of servers know, checked before anything is held."""

from typing import Any

from apps.core.errors import InvalidRequestError

# Lowest and highest value, as OpenAI's API allows them.
_RANGES = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
}
_MAX_STOPS = 4


def check_sampling(body: dict[str, Any]) -> None:
    """Raises InvalidRequestError naming the field; `null` is as good as no field."""
    for name, (lowest, highest) in _RANGES.items():
        value = body.get(name)
        if value is not None and not (_is_number(value) and lowest <= value <= highest):
            raise InvalidRequestError.of(name, f"must be a number from {lowest} to {highest}")
    seed = body.get("seed")
    if seed is not None and not (_is_number(seed) and isinstance(seed, int)):
        raise InvalidRequestError.of("seed", "must be a whole number")
    if not _is_stop(body.get("stop")):
        raise InvalidRequestError.of(
            "stop", f"must be a text or a list of at most {_MAX_STOPS} texts"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_stop(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= _MAX_STOPS and all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str)

"""What a client asks of the gateway itself, in headers that start with `x-inferadmin-`."""

from collections.abc import Mapping
from dataclasses import dataclass

from apps.core.errors import InvalidRequestError

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Wishes:
    """`no_fallback`: only the first target may be tried."""

    no_fallback: bool = False


NO_WISHES = Wishes()


def wishes_of(meta: Mapping[str, str]) -> Wishes:
    """Out of WSGI-style header names. Raises InvalidRequestError naming the header."""
    value = meta.get("HTTP_X_INFERADMIN_NO_FALLBACK")
    if value is None:  # nearly always
        return NO_WISHES
    flag = _FLAGS.get(value.strip().lower())
    if flag is None:
        raise InvalidRequestError.of("x-inferadmin-no-fallback", "must be true or false")
    return Wishes(no_fallback=flag)

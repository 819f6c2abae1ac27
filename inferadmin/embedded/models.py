"""Which example models there are, and whether Triton has them ready."""

import json
import time
import urllib.request
from collections.abc import Callable

from inferadmin.embedded.triton import Triton

# Names of the folders in `repository/`, in the order in which they are worth waiting for.
LOADED_AT_START = ("smollm2", "language-id", "minilm")
_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.3


def wait_until_ready(triton: Triton, *, tick: Callable[[], None]) -> list[str]:
    """Wait a minute at most for the example models; returns the names of those that are not ready.

    `tick` is called between two looks.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    while (missing := _missing(triton)) and time.monotonic() < deadline:
        tick()
        time.sleep(_POLL_SECONDS)
    return missing


def _missing(triton: Triton) -> list[str]:
    ready = _ready(triton)
    return [name for name in LOADED_AT_START if name not in ready]


def _ready(triton: Triton) -> set[str]:
    """Names with a version that answers; empty while Triton itself does not."""
    index = urllib.request.Request(  # noqa: S310
        f"{triton.url}/v2/repository/index", data=b'{"ready": true}', method="POST"
    )
    try:
        with urllib.request.urlopen(index, timeout=2) as answer:  # noqa: S310
            return {item["name"] for item in json.load(answer)}
    except OSError:
        return set()

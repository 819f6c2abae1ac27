"""Waiting for Triton to have its models ready."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterable

from inferadmin.embedded.triton import Triton

# Names of the folders in `repository/`. Others are not waited for: they may take long, or fail.
EXAMPLES = frozenset({"smollm2", "language-id", "minilm"})
_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.3


def wait_until_ready(
    triton: Triton, names: Iterable[str], *, tick: Callable[[], None]
) -> list[str]:
    """Wait a minute at most for those of `names` that are examples; returns what is not ready.

    `tick` is called between two looks.
    """
    wanted = EXAMPLES.intersection(names)
    deadline = time.monotonic() + _WAIT_SECONDS
    while (missing := wanted - _ready(triton)) and time.monotonic() < deadline:
        tick()
        time.sleep(_POLL_SECONDS)
    return sorted(missing)


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

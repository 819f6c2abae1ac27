"""What the person at the keyboard sees: one line a step, with its time or with what to do."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str = "") -> None:
    """One line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def step(what: str) -> Iterator[None]:
    """A line that names the step and, when it has ended, how long it took."""
    sys.stdout.write(f"  {what:<44}")
    sys.stdout.flush()
    began = time.monotonic()
    try:
        yield
    except BaseException:
        say("failed")
        raise
    say(f"{time.monotonic() - began:6.1f} s")

"""One running product for all stories: each leaves it running."""

from collections.abc import Iterator

import pytest

from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack

"""One running product for all stories that leave it as they found it."""

from collections.abc import Iterator

import pytest

from tests.support.stack import Stack, stack_in


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_in(tmp_path_factory.mktemp("stack")) as stack:
        yield stack

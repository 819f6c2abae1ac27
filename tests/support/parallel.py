"""pytest plugin: which tests stay together in a parallel run (`-n 2`), and which get a second try.

Tests that share what is dear to start run in one process, and the longest groups begin. Stories on
real processes race with a busy machine: one that fails is run once more, and the summary says so.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_GROUPS = {
    "stack": ("tests/e2e/", "tests/browser/test_story.py"),
    "browser": ("tests/browser/",),
    "engines": ("tests/embedded/", "test_real_"),
}


def _group_of(nodeid: str) -> str:
    """Name of the group, or the file of a test that is in none."""
    path = nodeid.partition("::")[0]
    names = (name for name, parts in _GROUPS.items() if any(part in path for part in parts))
    return next(names, path)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Sends a group whole to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return _group_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    """What xdist asks for: how to share the tests out."""
    return GroupScheduling(config, log)


@pytest.hookimpl(trylast=True)  # after the shuffling
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the long groups first; the order in a group and of the rest stays shuffled."""
    for item in items:
        if _group_of(item.nodeid) in _GROUPS:
            item.add_marker(pytest.mark.flaky(reruns=1))
    if not hasattr(config, "workerinput"):
        return
    ranks = {name: rank for rank, name in enumerate(_GROUPS)}
    items.sort(key=lambda item: ranks.get(_group_of(item.nodeid), len(ranks)))

"""Real model servers for tests: `triton` and `llama_cpp`, started once a run.

A test that changes what is loaded leaves it as it found it, or uses a model of its own: a folder
that it writes into `triton.repository`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inferadmin.embedded import triton as embedded_triton
from inferadmin.embedded.llamacpp import LlamaCpp
from inferadmin.embedded.processes import running
from inferadmin.embedded.triton import Triton


@pytest.fixture(scope="session")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triton]:
    """A Triton with the example models in its repository, none of them loaded."""
    reason = embedded_triton.obstacle()
    if reason is not None:
        pytest.skip(f"NO REAL TRITON: {reason}")
    folder: Path = tmp_path_factory.mktemp("triton")
    engine = Triton(repository=folder / "repository", backends=folder / "backends")
    embedded_triton.copy_examples(engine.repository)
    with running(engine.command(), folder):
        yield engine


@pytest.fixture(scope="session")
def llama_cpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaCpp]:
    """A llama.cpp server; callers need its `api_key`."""
    engine = LlamaCpp()
    with running(engine.command(), tmp_path_factory.mktemp("llamacpp")):
        yield engine

"""What every test of telemetry needs."""

from collections.abc import Iterator

import pytest

from apps.metrics.services.samples import known_series


@pytest.fixture(autouse=True)
def _forgotten_series() -> Iterator[None]:
    """Series of one test do not exist in the next."""
    known_series.clear()
    yield
    known_series.clear()

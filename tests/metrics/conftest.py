"""What every test of telemetry needs."""

from collections.abc import Iterator

import pytest

from apps.metrics.selectors import current
from apps.metrics.services.samples import known_series


@pytest.fixture(autouse=True)
def _forgotten_series() -> Iterator[None]:
    """Series of one test do not exist in the next."""
    known_series.clear()
    yield
    known_series.clear()


@pytest.fixture(autouse=True)
def _redis_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage in one test is over in the next."""
    monkeypatch.setattr(current, "_outage", current._Outage())

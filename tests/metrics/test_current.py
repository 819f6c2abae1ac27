"""What pages ask for while Redis is away."""

import pytest
import redis

from apps.metrics import gateway_memory, scrape_memory
from apps.metrics.selectors.current import overview_now, placement_figures, server_figures


def test_a_redis_that_is_away_is_asked_once_and_pages_show_no_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def away(*args: object) -> None:
        asked.append(1)
        raise redis.TimeoutError

    monkeypatch.setattr(gateway_memory, "now", away)
    monkeypatch.setattr(scrape_memory, "currents", away)
    monkeypatch.setattr(scrape_memory, "current_of", away)

    assert overview_now() == {}
    assert server_figures() == {}
    assert placement_figures(1) == {}
    assert len(asked) == 1

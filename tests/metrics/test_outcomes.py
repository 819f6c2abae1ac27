"""From one scrape to the next: rates, resets, gaps."""

import pytest

from apps.metrics.outcomes import Outcome, outcome_of
from apps.metrics.scrape_memory import Current, Memory
from apps.metrics.scraping import Scrape


def page(model: str = "m", version: str = "1", **counters: float) -> str:
    labels = f'{{model="{model}",version="{version}"}}'
    return "".join(f"nv_inference_{name}{labels} {value}\n" for name, value in counters.items())


def after(*texts: str, step: float = 2.0, error: str = "") -> Outcome:
    """What comes out of scrapes of `texts`, `step` seconds apart."""
    memory, current = Memory(), Current()
    for number, text in enumerate(texts):
        scrape = Scrape(1, at=1000.0 + number * step, seconds=0.01, text=text, error=error)
        outcome = outcome_of(scrape, memory, current)
        memory, current = outcome.memory, outcome.current
    return outcome


def test_counters_become_rates_and_means() -> None:
    outcome = after(
        page(request_success=10, request_failure=1, request_duration_us=0, queue_duration_us=0),
        page(
            request_success=30,
            request_failure=3,
            request_duration_us=400_000,
            queue_duration_us=20_000,
        ),
    )

    assert outcome.current.values == pytest.approx(
        {
            "requests_per_second": 11,
            "failures_per_second": 1,
            "latency_mean_ms": 20,
            "queue_mean_ms": 1,
        }
    )
    assert outcome.current.models["m", "1"].requests_per_second == 11


def test_the_first_scrape_knows_no_rate_but_says_what_there_is() -> None:
    values = after(page(request_success=10, pending_request_count=4)).current.values

    assert values["requests_per_second"] is None
    assert values["pending_requests"] == 4
    assert "failures_per_second" not in values


def test_idle_is_a_rate_of_zero_and_no_latency() -> None:
    text = page(request_success=10, request_duration_us=500)

    values = after(text, text).current.values

    assert values["requests_per_second"] == 0
    assert values["latency_mean_ms"] is None


def test_a_counter_that_fell_starts_anew_and_never_shows_a_negative_rate() -> None:
    before = page(request_success=100, request_duration_us=9000)
    reset = page(request_success=2, request_duration_us=9999)
    later = page(request_success=6, request_duration_us=19_999)

    assert after(before, reset).current.values["requests_per_second"] is None
    assert after(before, reset, later).current.values["requests_per_second"] == 2
    assert after(before, reset, later).current.values["latency_mean_ms"] == pytest.approx(2.5)


def test_a_reset_of_one_version_leaves_the_others_alone() -> None:
    before = page(version="1", request_success=100) + page(version="2", request_success=10)
    now = page(version="1", request_success=1) + page(version="2", request_success=20)

    outcome = after(before, now)

    assert outcome.current.models["m", "1"].requests_per_second is None
    assert outcome.current.models["m", "2"].requests_per_second == 5
    assert outcome.current.values["requests_per_second"] == 5


def test_a_series_that_vanished_and_came_back_is_not_compared() -> None:
    loaded, unloaded = page(request_success=100), page(model="other", request_success=1)

    assert ("m", "1") not in after(loaded, unloaded).current.models
    assert after(loaded, unloaded, loaded).current.models["m", "1"].requests_per_second is None


def test_a_long_pause_between_scrapes_is_a_gap() -> None:
    outcome = after(page(request_success=1), page(request_success=500), step=120)

    assert outcome.current.values["requests_per_second"] is None


def test_models_are_drawn_every_ten_seconds() -> None:
    pages = [page(request_success=10 * number) for number in range(8)]

    drawn = [
        any(point.key.labels for point in after(*pages[: count + 1]).points) for count in range(8)
    ]
    last = next(p for p in after(*pages[:6]).points if p.key.labels)

    # The very first scrape has no rate to draw; the next turn is ten seconds later.
    assert drawn == [False, False, False, False, False, True, False, False]
    assert last.key.labels == (("model", "m"), ("version", "1"))
    assert last.value == 5


def test_a_failed_scrape_keeps_the_values_and_waits_longer_each_time() -> None:
    good = after(page(request_success=1), page(request_success=3))
    memory, current = good.memory, good.current
    pauses = []
    for number in range(6):
        failed = Scrape(1, at=2000.0 + number, seconds=3, error="timeout")
        outcome = outcome_of(failed, memory, current)
        memory, current = outcome.memory, outcome.current
        pauses.append(memory.next_at - failed.at)

    assert pauses == [2, 4, 8, 16, 30, 30]
    assert current.error == "timeout"
    assert current.values == good.current.values
    assert outcome.points == []


def test_a_page_that_works_again_forgets_the_failure() -> None:
    failed = Scrape(1, at=1000, seconds=3, error="timeout")
    outcome = outcome_of(failed, Memory(), Current())

    again = Scrape(1, at=1010, seconds=0.1, text=page(request_success=1))
    recovered = outcome_of(again, outcome.memory, outcome.current)

    assert recovered.current.error == ""
    assert recovered.memory.failures == 0
    assert recovered.memory.next_at == 0

"""Histograms: what gateway workers send and pages show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.metrics.histogram import LAST_BUCKET, bucket_of, from_wire, mean, merge, quantile

durations = st.floats(min_value=1e-4, max_value=300)


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0, 0), (-1, 0), (1e-4, 0), (2e-4, 8), (0.1024, 80), (1e9, LAST_BUCKET)]
)
def test_a_duration_has_one_bucket(seconds: float, bucket: int) -> None:
    assert bucket_of(seconds) == bucket


def test_an_empty_histogram_has_no_quantile() -> None:
    assert quantile({}, 0.5) is None
    assert mean({}) is None


@given(st.lists(durations, min_size=1, max_size=60), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_quantile_is_within_five_percent(values: list[float], q: float) -> None:
    buckets = merge({bucket_of(value): 1} for value in values)
    exact = sorted(values)[max(0, -int(-q * len(values) // 1) - 1)]

    assert quantile(buckets, q) == pytest.approx(exact, rel=0.05)


@given(st.lists(durations, min_size=1, max_size=60))
def test_the_mean_is_within_five_percent(values: list[float]) -> None:
    buckets = merge({bucket_of(value): 1} for value in values)

    assert mean(buckets) == pytest.approx(sum(values) / len(values), rel=0.05)


def test_merging_adds_counts() -> None:
    assert merge([{1: 2, 3: 1}, {1: 1}, {}]) == {1: 3, 3: 1}


@pytest.mark.parametrize("raw", [None, [], "x", {"a": 1}, {"1": "2"}, {"1": -1}, {"999": 1}])
def test_what_is_no_histogram_is_empty(raw: object) -> None:
    assert from_wire(raw) == {}


def test_a_histogram_comes_back_from_json() -> None:
    assert from_wire({"57": 3, "60": 1}) == {57: 3, 60: 1}

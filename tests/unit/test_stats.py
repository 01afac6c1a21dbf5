"""One percentile, and summaries that never invent a zero."""

from __future__ import annotations

import math

import pytest

from vision_bench.stats import percentile, percentile_interval, samples_needed, summarise, wilson_interval


@pytest.mark.parametrize(
    ("values", "fraction", "expected"),
    [
        ([5.0], 0.99, 5.0),
        ([1.0, 2.0], 0.5, 1.5),
        ([4.0, 1.0, 3.0, 2.0], 0.0, 1.0),
        ([4.0, 1.0, 3.0, 2.0], 1.0, 4.0),
        (list(range(1, 11)), 0.95, 9.55),
        ([1.0, math.inf], 1.0, math.inf),
        ([math.inf, math.inf], 0.5, math.inf),
    ],
)
def test_percentile_interpolates_between_neighbours(values: list[float], fraction: float, expected: float) -> None:
    """Type 7: position fraction * (n - 1); infinities stand for failures and stay infinite, never NaN."""
    assert percentile(values, fraction) == pytest.approx(expected)


def test_percentile_between_a_number_and_a_failure_is_a_failure() -> None:
    """Half way to infinity is infinity."""
    assert percentile([1.0, math.inf], 0.5) == math.inf


@pytest.mark.parametrize(("values", "fraction"), [([], 0.5), ([1.0], -0.1), ([1.0], 1.1)])
def test_percentile_refuses_what_has_no_answer(values: list[float], fraction: float) -> None:
    """No values, or a fraction outside [0, 1]."""
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, fraction)


def test_an_empty_summary_has_a_count_and_no_numbers() -> None:
    """No data is None, never 0."""
    empty = summarise([])
    assert empty.count == 0
    assert {empty.mean, empty.p50, empty.p90, empty.p99, empty.minimum, empty.maximum} == {None}


def test_a_summary_knows_its_extremes() -> None:
    """Three values, hand-checked."""
    found = summarise([3.0, 1.0, 2.0])
    assert (found.count, found.mean, found.p50, found.minimum, found.maximum) == (3, 2.0, 2.0, 1.0, 3.0)


@pytest.mark.parametrize(("fraction", "needed"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.01, 368)])
def test_samples_that_a_percentile_needs(fraction: float, needed: int) -> None:
    """ln(0.025) / ln(p), rounded up: below it one end of the interval has not been seen."""
    assert samples_needed(fraction) == needed
    ordered = [float(value) for value in range(needed)]
    assert percentile_interval(ordered, fraction) is not None
    assert percentile_interval(ordered[1:], fraction) is None


def test_the_interval_of_a_median_is_the_textbook_one() -> None:
    """Of 20 values the sixth and the fifteenth hold the median with 95.9 %."""
    assert percentile_interval([float(value) for value in range(1, 21)], 0.5) == (6.0, 15.0)


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"), [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)]
)
def test_wilson_interval(successes: int, count: int, low: float, high: float) -> None:
    """Published values (Newcombe 1998, method 3, for 81 of 263); at 0 and at all of them it still has a width."""
    assert wilson_interval(successes, count) == pytest.approx((low, high), abs=1e-4)


def test_no_trial_has_no_share() -> None:
    """None, not 0 to 1."""
    assert wilson_interval(0, 0) is None

"""One percentile, and summaries that never invent a zero."""

from __future__ import annotations

import math

import pytest

from vision_bench.stats import percentile, summarise


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

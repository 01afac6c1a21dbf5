"""Laws of the one percentile, and agreement with NumPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vision_bench.stats import percentile

numbers = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60)
fractions = st.floats(0, 1)


@given(numbers, fractions)
def test_percentile_is_numpys_linear_one(values: list[float], fraction: float) -> None:
    """Type 7 is NumPy's default method."""
    assert np.isclose(percentile(values, fraction), np.quantile(values, fraction), rtol=1e-9, atol=1e-6)


@given(numbers, fractions, fractions)
def test_percentile_grows_with_its_fraction(values: list[float], one: float, other: float) -> None:
    """A higher fraction never gives a smaller value, within rounding."""
    low, high = sorted((one, other))
    assert percentile(values, low) <= percentile(values, high) + 1e-6


@given(numbers, fractions)
def test_percentile_stays_within_the_values(values: list[float], fraction: float) -> None:
    """Interpolation never leaves the range, within rounding."""
    assert min(values) - 1e-6 <= percentile(values, fraction) <= max(values) + 1e-6

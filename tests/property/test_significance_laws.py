"""Laws of comparing two samples."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vision_bench.significance import (
    ALPHA,
    FEWEST_BLOCKS,
    autocorrelation_time,
    block_length,
    holm,
    mcnemar,
    quantile_ratios,
)

times = st.floats(0.1, 1e5) | st.just(math.inf)
samples = st.lists(times, min_size=2, max_size=40)
p_values = st.lists(st.floats(0, 1), max_size=12)


@settings(deadline=None, max_examples=40)
@given(samples, st.integers(1, 8), st.integers(0, 5))
def test_an_arm_compared_with_itself_is_the_same(values: list[float], block: int, seed: int) -> None:
    """Paired: the ratio is 1 in every resample, or not told where the quantile is infinite."""
    (ratio,) = quantile_ratios(
        values, values, (0.5,), margin=0.05, is_paired=True, block=block, resamples=30, seed=seed
    )
    assert ratio.p_differs == 1.0
    if all(map(math.isfinite, values)):
        assert ratio.estimate == 1.0 and ratio.interval == (1.0, 1.0) and ratio.p_outside == pytest.approx(1 / 31)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(times, times), min_size=3, max_size=30), st.integers(1, 5))
def test_the_arms_can_be_exchanged(pairs: list[tuple[float, float]], block: int) -> None:
    """B over A is one over A over B, and the p-values are the same."""
    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    (there,) = quantile_ratios(a, b, (0.5,), margin=0.1, is_paired=True, block=block, resamples=39)
    (back,) = quantile_ratios(b, a, (0.5,), margin=0.1, is_paired=True, block=block, resamples=39)
    assert (there.p_differs, there.p_outside) == (back.p_differs, back.p_outside)
    if there.estimate not in (None, 0.0, math.inf) and back.estimate:
        assert there.estimate == pytest.approx(1 / back.estimate)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(1, 1e4), min_size=20, max_size=60), st.floats(1.2, 10))
def test_a_factor_on_every_request_is_found(values: list[float], factor: float) -> None:
    """Paired, it is the ratio of every quantile in every resample, and as certain as the resamples allow."""
    slower = [value * factor for value in values]
    for ratio in quantile_ratios(values, slower, (0.5, 0.9), margin=0.1, is_paired=True, block=3, resamples=99):
        assert ratio.estimate == pytest.approx(factor)
        assert ratio.interval == pytest.approx((factor, factor))
        assert ratio.p_differs == pytest.approx(0.02) and ratio.p_outside == 1.0


def test_equal_arms_whose_requests_hang_together_are_rarely_told_apart() -> None:
    """A lognormal queue with a memory of four requests, drawn anew for each arm: in a twentieth at most."""
    rng = random.Random(250)
    told_apart = []
    for _ in range(120):
        a, b = _with_memory(250, rng), _with_memory(250, rng)
        block = block_length(a, b)
        if block * FEWEST_BLOCKS <= 250:
            ratios = quantile_ratios(a, b, (0.5, 0.9), margin=0.05, is_paired=True, block=block, resamples=199)
            told_apart += [ratio.p_differs <= ALPHA for ratio in ratios]
    assert len(told_apart) > 200
    assert sum(told_apart) <= 0.05 * len(told_apart)


def _with_memory(count: int, rng: random.Random) -> list[float]:
    level, values = rng.gauss(0, 1), []
    for _ in range(count):
        level = 0.6 * level + 0.8 * rng.gauss(0, 1)
        values.append(100.0 * math.exp(0.2 * level))
    return values


@given(p_values)
def test_holm_raises_p_values_and_keeps_their_order(values: list[float]) -> None:
    """No value falls or passes 1; what was smaller is not larger; the smallest is that of Bonferroni."""
    adjusted = holm(values)
    assert all(before <= after <= 1.0 for before, after in zip(values, adjusted, strict=True))
    ranked = sorted(zip(values, adjusted, strict=True))
    assert all(left[1] <= right[1] for left, right in itertools.pairwise(ranked))
    if values:
        assert min(adjusted) == min(1.0, len(values) * min(values))


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_a_probability(only_a: int, only_b: int) -> None:
    """Within (0, 1], and 1 where the arms differ as often in either direction."""
    assert 0.0 < mcnemar(only_a, only_b) <= 1.0
    assert mcnemar(only_a, only_a) == 1.0
    assert (mcnemar(0, 6) <= ALPHA) and (mcnemar(0, 5) > ALPHA)


@given(st.lists(st.floats(-1e6, 1e6), max_size=60))
def test_memory_is_one_at_least(values: list[float]) -> None:
    """And the same for a series upside down."""
    memory = autocorrelation_time(values)
    assert memory >= 1.0
    assert memory == pytest.approx(autocorrelation_time([-value for value in values]))


@given(samples)
def test_a_block_fits_in_its_series(values: list[float]) -> None:
    """At least one request, at most about half of them."""
    assert 1 <= block_length(values) <= max(4, len(values))

"""significance: against SciPy 1.17.1 and statsmodels 0.15.0, and on series whose truth is known."""

from __future__ import annotations

import math
import random

import pytest

from vision_bench.significance import (
    autocorrelation_time,
    block_length,
    direction,
    holm,
    mcnemar,
    quantile_ratios,
)


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"),
    [
        (0, 0, 1.0),
        (1, 9, 0.021484375),
        (5, 5, 1.0),
        (3, 17, 0.0025768280029296875),
        (40, 80, 0.00033040001839131815),
        (700, 800, 0.010559255466711506),
    ],
)
def test_mcnemar_is_scipys_exact_binomial(only_a: int, only_b: int, p: float) -> None:
    """binomtest(min(a, b), a + b, 0.5).pvalue; no pair that differs gives 1."""
    assert mcnemar(only_a, only_b) == pytest.approx(p, rel=1e-9)
    assert mcnemar(only_b, only_a) == mcnemar(only_a, only_b)


def test_holm_is_that_of_statsmodels() -> None:
    """multipletests([0.01, 0.04, 0.03, 0.005, 0.5], method="holm")[1]"""
    assert holm([0.01, 0.04, 0.03, 0.005, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.5])
    assert holm([]) == []


def two_arms() -> tuple[list[float], list[float]]:
    """B takes 1.1 times as long as A, request by request, with 5 % of noise."""
    rng = random.Random(3)
    a = [rng.lognormvariate(4, 0.5) for _ in range(200)]
    return a, [value * 1.1 * rng.lognormvariate(0, 0.05) for value in a]


@pytest.mark.parametrize(
    ("is_paired", "expected"),
    [
        (True, [(1.09977, 1.05418, 1.13846), (1.09257, 1.03733, 1.15748)]),
        (False, [(1.09977, 0.94052, 1.28901), (1.09257, 0.96075, 1.25608)]),
    ],
)
def test_the_bootstrap_is_scipys_where_requests_are_independent(
    is_paired: bool, expected: list[tuple[float, float, float]]
) -> None:
    """scipy.stats.bootstrap((a, b), log ratio of np.quantile, paired=…, method="percentile", n_resamples=20000), for
    the median and p90, in blocks of one; within what 1000 resamples scatter."""
    a, b = two_arms()
    found = quantile_ratios(a, b, (0.5, 0.9), margin=0.05, is_paired=is_paired, block=1, resamples=1000)
    for ratio, (estimate, low, high) in zip(found, expected, strict=True):
        assert ratio.estimate == pytest.approx(estimate, abs=1e-5)
        assert ratio.interval == pytest.approx((low, high), abs=0.03)


def test_pairing_takes_out_what_the_arms_share() -> None:
    """A tenth more in every request is certain when requests are compared with themselves, and is not otherwise."""
    a, b = two_arms()
    paired, apart = (
        quantile_ratios(a, b, (0.5,), margin=0.02, is_paired=is_paired, block=1, resamples=500)[0]
        for is_paired in (True, False)
    )
    assert direction(paired.estimate, paired.p_differs, paired.p_outside) == "SLOWER"
    assert direction(apart.estimate, apart.p_differs, apart.p_outside) == "INCONCLUSIVE"


def correlated(rng: random.Random, count: int, memory: float) -> list[float]:
    level, values = 0.0, []
    for _ in range(count):
        level = memory * level + rng.gauss(0, 1)
        values.append(level)
    return values


def test_memory_of_a_series_is_found() -> None:
    """AR(1) with 0.5 has an autocorrelation time of (1 + 0.5) / (1 - 0.5) = 3; white noise and constants have 1."""
    rng = random.Random(11)
    assert autocorrelation_time(correlated(rng, 20000, 0.5)) == pytest.approx(3, abs=0.3)
    assert autocorrelation_time(correlated(rng, 20000, 0.0)) == pytest.approx(1, abs=0.15)
    assert autocorrelation_time([5.0] * 100) == autocorrelation_time([]) == 1.0


def test_blocks_are_longer_than_the_memory() -> None:
    """Of 0.9, whose time is 19: at least 30 requests; independent ones get the cube root of their number."""
    rng = random.Random(5)
    assert block_length([math.exp(value) for value in correlated(rng, 2000, 0.9)]) >= 30
    assert block_length([math.exp(rng.gauss(0, 1)) for _ in range(1000)]) == 10
    assert block_length([math.inf, 3.0, math.inf, 4.0]) >= 1


def test_two_runs_of_one_thing_are_seldom_called_different() -> None:
    """Of 24 unpaired pairs of correlated series, at the 5 % level: few with blocks, many with blocks of one."""
    rng = random.Random(2)

    def alarms(block: int | None) -> int:
        count = 0
        for trial in range(24):
            a, b = ([math.exp(v / 4) for v in correlated(rng, 160, 0.8)] for _ in range(2))
            length = block_length(a, b) if block is None else block
            (ratio,) = quantile_ratios(
                a, b, (0.5,), margin=0.05, is_paired=False, block=length, resamples=100, seed=trial
            )
            count += ratio.p_differs <= 0.05
        return count

    assert alarms(None) <= 4 < alarms(1)


def test_a_failure_is_slower_than_any_answer() -> None:
    """One arm's p90 is infinite: so is the ratio, and it is slower; both: nothing can be said."""
    fine = [100.0 + place % 7 for place in range(200)]
    broken = [math.inf if place % 4 == 0 else value for place, value in enumerate(fine)]
    worse, better, neither = (
        quantile_ratios(a, b, (0.9,), margin=0.1, is_paired=True, block=6, resamples=200)[0]
        for a, b in ((fine, broken), (broken, fine), (broken, broken))
    )
    assert worse.estimate == math.inf and direction(worse.estimate, worse.p_differs, worse.p_outside) == "SLOWER"
    assert better.estimate == 0.0 and direction(better.estimate, better.p_differs, better.p_outside) == "FASTER"
    assert neither.estimate is None and neither.p_outside == 1.0
    assert direction(neither.estimate, neither.p_differs, neither.p_outside) == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("ratio", "p_differs", "p_outside", "word"),
    [
        (1.2, 0.01, 0.9, "SLOWER"),
        (0.8, 0.01, 0.9, "FASTER"),
        (1.01, 0.01, 0.01, "EQUIVALENT"),
        (1.01, 0.5, 0.01, "EQUIVALENT"),
        (1.2, 0.06, 0.9, "INCONCLUSIVE"),
        (1.0, 0.5, 0.06, "INCONCLUSIVE"),
        (None, 0.01, 0.01, "INCONCLUSIVE"),
    ],
)
def test_one_word(ratio: float | None, p_differs: float, p_outside: float, word: str) -> None:
    """A certain difference within the margin is equivalent; nothing certain is inconclusive."""
    assert direction(ratio, p_differs, p_outside) == word

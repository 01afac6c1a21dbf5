"""One number of a step: what is given, and what is withheld with its reason."""

from __future__ import annotations

import math

from vision_bench.bench.column import column


def test_percentiles_that_the_sample_can_carry() -> None:
    """80 values carry p50, p90 and p95; the p99 needs 368, and says so."""
    shown = column([float(value) for value in range(1, 81)])
    assert (shown["count"], shown["mean"], shown["p50"], shown["max"]) == (80, 40.5, 40.5, 80.0)
    assert (shown["p99"], shown["withheld"]) == (None, {"p99": "80 samples, 368 needed"})
    assert shown["p95"] is not None and shown["interval"]["p95"][0] < shown["p95"] < shown["interval"]["p95"][1]


def test_nothing_is_no_zero() -> None:
    """Without a value every cell is None with a reason."""
    shown = column([])
    assert shown["count"] == 0
    assert all(shown[name] is None and shown["withheld"][name] for name in ("mean", "p50", "p90", "p95", "p99", "max"))


def test_failures_are_infinite_and_reach_the_tail_they_belong_to() -> None:
    """1 failure of 100 leaves the median alone; mean and max are no numbers any more, and say why."""
    shown = column([*[10.0] * 99, math.inf])
    assert (shown["count"], shown["p50"], shown["p95"]) == (100, 10.0, 10.0)
    assert (shown["mean"], shown["max"]) == (None, None)
    assert shown["withheld"]["max"] == "1 of 100 failed or were not sent and count as infinite"


def test_half_of_the_requests_failing_leaves_no_median() -> None:
    """It is infinite, which JSON cannot say."""
    shown = column([*[10.0] * 40, *[math.inf] * 41])
    assert (shown["p50"], shown["withheld"]["p50"].split()[0]) == (None, "41")
    assert shown["interval"]["p50"] == [10.0, None]


def test_what_still_ran_is_worth_at_least_its_age() -> None:
    """A percentile below all ages stands; one that depends on them is given as a bound."""
    shown = column([10.0] * 90, censored=[50.0] * 10)
    assert (shown["count"], shown["p50"], shown["p90"]) == (100, 10.0, None)
    assert shown["withheld"]["max"] == "at least 50.0: 10 of 100 still ran when the step ended"


def test_an_age_below_the_median_withholds_it() -> None:
    """The request may end up on either side."""
    shown = column([10.0, 20.0, 30.0, 40.0, 50.0, 60.0], censored=[5.0])
    assert shown["p50"] is None
    assert shown["withheld"]["p50"].startswith("at least 30.0")

"""report.figures: numbers to shapes."""

from __future__ import annotations

import math
import random

import pytest

from vision_bench.report.figures import Distribution, line, thin


def test_thinning_keeps_both_ends() -> None:
    """Ten of a thousand, evenly; fewer than asked for stay as they are."""
    assert thin(range(1000), 10) == [0, 111, 222, 333, 444, 555, 666, 777, 888, 999]
    assert thin([1, 2], 10) == [1, 2]


def test_an_interval_is_drawn_from_its_value() -> None:
    """2 in [1, 5] reaches 3 up and 1 down; a withheld value reaches nowhere."""
    errors = line("a", [1, 2], [2.0, None], colour="", low=[1.0, None], high=[5.0, None])["error_y"]
    assert (errors["array"], errors["arrayminus"]) == ([3.0, 0.0], [1.0, 0.0])


def test_a_distribution_is_known_to_one_percent() -> None:
    """Of 5000 values: at each point, the share of values at or under it is exact, whatever the memory."""
    rng = random.Random(7)
    values = [rng.lognormvariate(4, 1) for _ in range(5000)]
    distribution = Distribution()
    for value in values:
        distribution.add(value)
    points = distribution.ecdf(most=100)
    assert len(points) == 100 and points[-1][1] == 1.0
    for value, share in points:
        assert share == pytest.approx(sum(each <= value for each in values) / len(values), abs=1e-3)


def test_infinite_values_keep_a_distribution_from_its_top() -> None:
    """One of four failed: the curve ends at three quarters. A gap of 0 is at 0."""
    distribution = Distribution()
    for value in (0.0, 1.0, 2.0, math.inf):
        distribution.add(value)
    assert distribution.count == 4
    assert distribution.ecdf()[0] == (0.0, 0.25)
    assert distribution.ecdf()[-1][1] == 0.75


def test_nothing_gives_no_points() -> None:
    """Not a curve at zero."""
    assert Distribution().ecdf() == []

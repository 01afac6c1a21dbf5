"""The rise of response times on made-up answers."""

from __future__ import annotations

import pytest

from vision_bench.bench.rise import Timed, rise_of

SECOND = 10**9


def line(count: int, slope: float, *, noise: float = 0.0) -> list[Timed]:
    """An answer a second, each ``slope`` seconds slower than the one before; every other one late by ``noise``."""
    return [
        Timed(number * SECOND, round((1.0 + slope * number + noise * (number % 2)) * SECOND)) for number in range(count)
    ]


@pytest.mark.parametrize("slope", [0.0, 0.4, -0.05])
def test_a_straight_line_is_known_exactly(slope: float) -> None:
    """Nothing is left to chance, whatever the number of answers and the order in which they came."""
    for count in (12, 20, 2000):
        rise = rise_of(line(count, slope)[::-1])
        assert rise is not None
        assert rise.slope == pytest.approx(slope, abs=1e-6)
        assert rise.interval.high - rise.interval.low < 1e-2


def test_scatter_makes_the_interval_wide_and_more_answers_make_it_narrow() -> None:
    """The slope is inside."""
    wide, narrow = rise_of(line(21, 0.1, noise=1.0)), rise_of(line(2001, 0.1, noise=1.0))
    assert wide is not None and narrow is not None
    assert wide.interval.low < 0.1 < wide.interval.high
    assert narrow.interval.high - narrow.interval.low < 0.01 * (wide.interval.high - wide.interval.low)


@pytest.mark.parametrize("answers", [line(11, 0.0), [Timed(5, 7)] * 40])
def test_too_few_answers_or_all_due_at_once_say_nothing(answers: list[Timed]) -> None:
    """Eleven; forty of one moment."""
    assert rise_of(answers) is None

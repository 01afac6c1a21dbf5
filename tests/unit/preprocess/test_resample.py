"""Weights of torch's 8-bit bicubic filter."""

from __future__ import annotations

import numpy as np
import pytest

from vision_bench.preprocess.resample import bicubic_axis


def test_equal_lengths_are_not_filtered() -> None:
    """torch copies; a filter of one tap would give the same."""
    assert bicubic_axis(480, 480) is None


def test_doubling_has_two_phases_worked_out_by_hand() -> None:
    """A quarter pixel off: Keys' cubic with a = -0.5 at 1.25, 0.25, 0.75, 1.75, in 2^-14."""
    axis = bicubic_axis(8, 16)
    assert axis is not None and axis.precision == 14
    exact = np.array([-0.0703125, 0.8671875, 0.2265625, -0.0234375])
    assert axis.weights[7].tolist() == np.round(exact * 2**14).tolist()
    assert axis.weights[8].tolist() == axis.weights[7][::-1].tolist()
    assert axis.starts[7:9].tolist() == [2, 2]


def test_edges_take_what_there_is_and_share_it_out() -> None:
    """At the border the window is cut, the rest is normalised, and its place is kept inside the source."""
    axis = bicubic_axis(8, 16)
    assert axis is not None
    assert axis.starts.min() == 0 and axis.starts.max() == 8 - axis.taps
    assert np.count_nonzero(axis.weights[0]) < axis.taps
    assert abs(int(axis.weights[0].sum()) - 2**14) <= 2
    assert axis.weights[-1].tolist() == axis.weights[0][::-1].tolist()


@pytest.mark.parametrize(("source", "target", "taps"), [(854, 864, 4), (1920, 1664, 6), (4000, 400, 40), (3, 900, 3)])
def test_taps_follow_the_scale_and_the_source(source: int, target: int, taps: int) -> None:
    """Four while enlarging, four times the scale while shrinking, never more than there are pixels."""
    axis = bicubic_axis(source, target)
    assert axis is not None and axis.taps == pytest.approx(taps, abs=1)
    assert axis.taps <= source
    assert (axis.starts >= 0).all() and (axis.starts + axis.taps <= source).all()


def test_one_pixel_fills_any_length() -> None:
    """The smallest source there is."""
    axis = bicubic_axis(1, 50)
    assert axis is not None
    assert axis.starts.tolist() == [0] * 50
    assert set(axis.weights.ravel().tolist()) == {1 << axis.precision}

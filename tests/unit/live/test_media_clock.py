"""Media timestamps as times on the server's clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vision_bench.live.media_clock import MediaClock

MS = 1_000_000
SECOND = 1_000 * MS
EVERY = 3_000  # ticks of 90000 a second: 30 frames


def times_ms(timestamps: Sequence[int], arrivals_ms: Sequence[float], clock: MediaClock | None = None) -> list[float]:
    clock = clock or MediaClock()
    pairs = zip(timestamps, arrivals_ms, strict=True)
    return [clock.at_ns(timestamp, arrived_ns=round(at_ms * MS)) / MS for timestamp, at_ms in pairs]


def test_frames_are_as_far_apart_as_they_were_sent() -> None:
    """Delays that change by 40 ms do not move the frames, once one came without delay."""
    arrivals = [number * 100 / 3 + 5 + (0, 40, 12, 33, 7)[number % 5] for number in range(300)]
    found = times_ms([number * EVERY for number in range(300)], arrivals)
    assert found[0] == 5
    gaps = [after - before for before, after in pairwise(found)]
    assert all(gap == pytest.approx(100 / 3, abs=0.001) for gap in gaps)


def test_a_late_first_frame_is_made_up_for() -> None:
    """The first frame came 80 ms late; within 5 frames time stands where the others put it, and never turned back."""
    arrivals = [80.0, *(number * 100 / 3 for number in range(1, 30))]
    found = times_ms([number * EVERY for number in range(30)], arrivals)
    assert all(after > before for before, after in pairwise(found))
    assert found[5:] == pytest.approx(arrivals[5:], abs=0.001)


def test_a_stall_and_its_burst_leave_no_trace() -> None:
    """Two seconds of frames that come all at once keep their distances."""
    arrivals = [max(number * 100 / 3, 3_000) if 30 <= number < 90 else number * 100 / 3 for number in range(150)]
    found = times_ms([number * EVERY for number in range(150)], arrivals)
    assert found == pytest.approx([number * 100 / 3 for number in range(150)], abs=0.001)


@pytest.mark.parametrize("drift", [-1e-4, 1e-4])
def test_a_sender_s_clock_that_drifts_is_followed(drift: float) -> None:
    """After an hour of 100 millionths, which are 360 ms, the time is right within 2 ms."""
    arrivals = [number * 500 + (0, 15)[number % 2] for number in range(7_200)]
    found = times_ms([round(number * 45_000 * (1 + drift)) for number in range(7_200)], arrivals)
    errors = [at_ms - number * 500 for number, at_ms in enumerate(found)]
    assert max(abs(error) for error in errors) < 2


def test_timestamps_wrap_round() -> None:
    """From 2**32 - 1000 to 2000 is one frame."""
    assert times_ms([2**32 - 1_000, 2_000, 5_000], [7, 40, 74]) == pytest.approx([7, 40.333, 73.667], abs=0.35)


@pytest.mark.parametrize(
    ("timestamps", "arrivals_ms", "last_ms", "breaks"),
    [
        ([0, 3_000, 1_500_000_000], [0, 33, 66], 66, 1),  # begun anew at another number
        ([90_000, 93_000, 0], [0, 33, 66], 66, 1),  # begun anew at a smaller one, which aiortc takes for a wrap
        ([0, 3_000, 6_000], [0, 33, 30_000], 30_000, 1),  # stood still for half a minute, its timestamps too
        ([0, 3_000, 2_700_000], [0, 33, 30_000], 30_000, 0),  # stood still while its timestamps went on
        ([0, 3_000, 3_000], [0, 33, 66], 66, 1),  # one timestamp twice
    ],
)
def test_timestamps_that_cannot_be_followed(
    timestamps: list[int], arrivals_ms: list[float], last_ms: float, breaks: int
) -> None:
    """Time goes on from the arrival, and it is counted."""
    clock = MediaClock()
    assert times_ms(timestamps, arrivals_ms, clock)[-1] == pytest.approx(last_ms, abs=1)
    assert clock.breaks == breaks


def test_other_rates_are_in_their_ticks() -> None:
    """A pulled source with a time base of a thousandth."""
    assert times_ms([0, 40, 80], [3, 43, 83], MediaClock(rate=1_000)) == [3, 43, 83]


@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1) | st.integers(0, 9_000), st.integers(-(10**10), 10**10)), max_size=50),
    st.sampled_from([1, 1_000, 90_000, 10**9, 10**12]),
)
def test_time_always_ascends(frames: list[tuple[int, int]], rate: int) -> None:
    """Whatever timestamps and arrivals, forwards and backwards: each frame is later than the one before."""
    clock = MediaClock(rate=rate)
    found = [clock.at_ns(timestamp, arrived_ns=arrived_ns) for timestamp, arrived_ns in frames]
    assert all(after > before for before, after in pairwise(found))

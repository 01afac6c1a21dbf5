"""Laws of cutting: nothing lost, nothing twice, whatever the times."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.media.plan import plan_windows
from vision_bench.media.times import MAX_START_GAP_SECONDS, PictureTimes, steady_rate

RATES = st.sampled_from([Fraction(n) for n in (1, 5, 10, 24, 25, 30, 60, 120)] + [Fraction(30000, 1001)])
TIME_BASES = st.sampled_from([Fraction(1, n) for n in (600, 1000, 12_800, 30_000, 90_000)])


@st.composite
def picture_times(draw: st.DrawFn) -> PictureTimes:
    """Ascending times with any steps, from any start."""
    steps = draw(st.lists(st.integers(1, 3000), min_size=0, max_size=80))
    at = draw(st.integers(-10_000, 10**9))
    pts = [at]
    for step in steps:
        pts.append(pts[-1] + step)
    return PictureTimes(tuple(pts), Fraction(1, 1000), None, draw(st.integers(1, 3000)))


@given(picture_times(), st.integers(0, 20), st.integers(1, 40), st.fractions(Fraction(1, 10), 10, max_denominator=20))
def test_every_frame_is_in_one_clip_and_the_sound_is_whole(
    times: PictureTimes, start: int, span: int, length: Fraction
) -> None:
    """Windows share out the range's frames; a clip starts with a frame; its sound ends where the next's starts."""
    made = plan_windows(
        times, start=Fraction(start), end=Fraction(start + span), length=length, min_remainder=Fraction(0)
    )
    windows = sorted([*made.cut, *(window for window, _ in made.skipped)], key=lambda window: window.seq)
    assert len(windows) == made.asked
    held = [index for window in windows for index in range(window.first, window.stop)]
    wanted = [n for n in range(len(times.pts)) if start <= times.start_of(n) < start + span]
    assert held == wanted
    for window in windows:
        assert all(window.start <= times.start_of(n) < window.end for n in range(window.first, window.stop))
        assert window.start <= window.origin <= window.sound_end
        assert not window.frames or times.start_of(window.first) == window.origin
    for earlier, later in pairwise(windows):
        # The sound of a hole of over a second, before the clip's first frame, is in neither.
        assert earlier.sound_end == later.origin or later.origin - later.start > MAX_START_GAP_SECONDS
        assert earlier.sound_end <= later.origin
    assert all(window.frames == 0 for window, _ in made.skipped)


@given(RATES, TIME_BASES, st.integers(2, 400), st.integers(-(10**6), 10**9))
def test_rounding_to_ticks_never_hides_a_constant_rate(
    rate: Fraction, time_base: Fraction, frames: int, start: int
) -> None:
    """Times of a constant rate, rounded to any container's ticks, give a rate that explains them to a tick."""
    pts = [start + round(index / rate / time_base) for index in range(frames)]
    if len(set(pts)) < frames:
        return  # ticks coarser than the frames
    found = steady_rate(pts, time_base)
    assert found is not None
    assert all(abs(index / found / time_base - (tick - start)) <= 1 for index, tick in enumerate(pts))
    assert steady_rate(pts, time_base, [rate]) == rate


@given(st.integers(1, 50), st.integers(1, 50), st.integers(20, 60), st.integers(-1000, 1000))
def test_a_late_frame_is_never_called_constant(before: int, after: int, step: int, start: int) -> None:
    """Equal steps but for one that is twice as long."""
    steps = [step] * before + [2 * step] + [step] * after
    pts = [start + sum(steps[:index]) for index in range(len(steps) + 1)]
    assert steady_rate(pts, Fraction(1, 1000)) is None

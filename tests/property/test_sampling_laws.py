"""Laws of choosing frames, whatever the clip."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.media.frames import fit_pixels
from vision_bench.media.sampling import indices_at_fps, indices_of_count

COUNTS = st.integers(0, 5000)
RATES = st.floats(0.1, 240)


@given(COUNTS, RATES, st.floats(-2, 500))
def test_indices_ascend_inside_the_clip(frames: int, source_fps: float, fps: float) -> None:
    """Distinct, ascending, first and last frame among them, even in number unless it is one frame."""
    found = indices_at_fps(frames, source_fps, fps)
    assert all(a < b for a, b in pairwise(found))
    if frames:
        assert found[0] == 0 and (len(found) == 1 or found[-1] == frames - 1)
        assert len(found) % 2 == 0 or frames == 1
        assert len(found) <= min(frames, 768)
    else:
        assert found == []


@given(COUNTS, RATES, st.floats(0, 100), st.floats(0, 100))
def test_a_higher_rate_never_gives_fewer_frames(frames: int, source_fps: float, one: float, other: float) -> None:
    """The count grows with the rate."""
    low, high = sorted((one, other))
    assert len(indices_at_fps(frames, source_fps, low)) <= len(indices_at_fps(frames, source_fps, high))


@given(st.integers(1, 5000), st.integers(1, 800))
def test_steps_differ_by_one_at_most(frames: int, count: int) -> None:
    """Evenly spread: no gap is more than one frame wider than another."""
    found = indices_of_count(frames, count)
    steps = [b - a for a, b in pairwise(found)]
    assert len(found) == min(frames, count)
    assert not steps or max(steps) - min(steps) <= 1


@given(st.integers(1, 8000), st.integers(1, 8000), st.integers(1, 10_000_000))
def test_a_frame_fits_its_pixels_and_is_never_enlarged(width: int, height: int, most: int) -> None:
    """The bound holds for any shape, and nothing grows or vanishes."""
    fitted = fit_pixels(width, height, most)
    assert fitted[0] * fitted[1] <= most
    assert 1 <= fitted[0] <= width and 1 <= fitted[1] <= height

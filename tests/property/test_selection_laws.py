"""Laws of choosing frames: what is chosen belongs to the stream, not to the question."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.live.rings import put, ring_of

from vision_bench.live.failures import StreamFailure
from vision_bench.live.references import KINDS, Anchor, FrameReference, SegmentReference
from vision_bench.live.ring import Ring
from vision_bench.live.selection import select

GAPS_MS = st.lists(st.sampled_from([1, 20, 33, 34, 100, 480, 500, 999, 2500]) | st.integers(1, 3000), max_size=80)
TIMES_MS = GAPS_MS.map(lambda gaps: list(accumulate(gaps, initial=0)))
RATES = st.sampled_from([0.3, 0.5, 1.0, 2.0, 10.0, 29.97, 30.0]) | st.floats(0.01, 1000)
SMALL = st.integers(-100, 100)
ANCHORS = st.builds(Anchor, st.just("frame_index"), SMALL) | st.builds(
    Anchor, st.sampled_from(KINDS), st.integers(-40_000, 40_000)
)


def segment(ring: Ring, first: int, stop: int, max_fps: float) -> list[int]:
    reference = SegmentReference("a", Anchor("frame_index", first), Anchor("frame_index", stop), max_fps)
    return [frame.index for frame in select(ring, reference)]


def grid(times_ms: Sequence[int], max_fps: float) -> list[int]:
    """What the whole stream gives: the frames of which every question chooses its own."""
    return segment(ring_of(times_ms), 0, len(times_ms), max_fps)


@given(TIMES_MS, RATES, st.data())
def test_overlapping_questions_choose_the_same_frames(times: list[int], max_fps: float, data: st.DataObject) -> None:
    """A segment's frames are those of the whole stream that lie in it; its newest alone where none does."""
    first = data.draw(st.integers(0, len(times) - 1))
    stop = data.draw(st.integers(first + 1, len(times)))
    ours = [index for index in grid(times, max_fps) if first <= index < stop]
    assert segment(ring_of(times), first, stop, max_fps) == (ours or [stop - 1])


@given(TIMES_MS, RATES, st.integers(1, 40), st.data())
def test_what_is_forgotten_changes_no_choice(times: list[int], max_fps: float, held: int, data: st.DataObject) -> None:
    """A ring that has let its oldest frames go chooses, of the rest, what it chose before."""
    ring = ring_of(times, held=held)
    first = data.draw(st.integers(ring.first_index, len(times) - 1))
    ours = [index for index in grid(times, max_fps) if index >= first]
    assert segment(ring, first, len(times), max_fps) == (ours or [len(times) - 1])


@given(TIMES_MS, GAPS_MS, RATES)
def test_what_comes_later_changes_no_choice(times: list[int], gaps: list[int], max_fps: float) -> None:
    """A segment that is over has its frames for good."""
    ring = ring_of(times)
    before = segment(ring, 0, len(times), max_fps)
    for at_ms in list(accumulate(gaps, initial=times[-1]))[1:]:
        put(ring, at_ms)
    assert segment(ring, 0, len(times), max_fps) == before


@given(TIMES_MS, RATES)
def test_the_rate_is_a_ceiling(times: list[int], max_fps: float) -> None:
    """K frames last at least (K - 2) / max_fps seconds: no stretch, however chosen, runs faster for long."""
    kept = grid(times, max_fps)
    assert kept[0] == 0 and all(a < b for a, b in pairwise(kept))
    seconds = (times[kept[-1]] - times[0]) / 1000
    assert len(kept) <= seconds * max_fps + 2 + 1e-6


@given(st.lists(st.integers(0, 2000), max_size=60), st.floats(0.1, 60))
def test_frames_far_enough_apart_all_stay(extra_ms: list[int], max_fps: float) -> None:
    """A stream that is never faster than the ceiling loses nothing."""
    times = list(accumulate((1 + int(1000 / max_fps) + extra for extra in extra_ms), initial=0))
    assert grid(times, max_fps) == list(range(len(times)))


@given(TIMES_MS, st.integers(1, 40), ANCHORS, st.none() | ANCHORS, RATES)
def test_any_segment_is_answered_or_refused(
    times: list[int], held: int, start: Anchor, end: Anchor | None, max_fps: float
) -> None:
    """Ascending frames that are held, at least one; or a failure with a code."""
    ring = ring_of(times, held=held)
    with suppress(StreamFailure):
        frames = select(ring, SegmentReference("a", start, end, max_fps))
        assert frames and all(a.index < b.index for a, b in pairwise(frames))
        assert all(ring[frame.index] is frame for frame in frames)


@given(TIMES_MS, st.integers(1, 40), ANCHORS, st.integers(1, 5000), st.sampled_from(["nearest", "forward", "backward"]))
def test_a_frame_by_time_is_the_best_one(
    times: list[int], held: int, anchor: Anchor, tolerance_ms: int, direction: str
) -> None:
    """Within the tolerance, on the right side, and no frame that is held is nearer; refused only if there is none."""
    ring = ring_of(times, held=held)
    if anchor.kind == "frame_index":
        anchor = Anchor("timestamp_ms", anchor.value)
    edge = times[-1] if anchor.value < 0 else ring[ring.first_index].stream_ms
    target = anchor.value + (0 if anchor.kind == "timestamp_ms" else edge)
    misses = [frame.stream_ms - target for frame in ring]
    if direction != "nearest":
        misses = [miss for miss in misses if (miss >= 0 if direction == "forward" else miss <= 0)]
    best = min((abs(miss) for miss in misses), default=None)
    try:
        [frame] = select(ring, FrameReference("a", anchor, tolerance_ms, direction))  # type: ignore[arg-type]
    except StreamFailure:
        assert best is None or best > tolerance_ms
    else:
        assert abs(frame.stream_ms - target) == best
        assert direction == "nearest" or (frame.stream_ms - target) * (1 if direction == "forward" else -1) >= 0

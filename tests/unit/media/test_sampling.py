"""Choosing frames by rate, count and least distance."""

from __future__ import annotations

import math

import pytest

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.media.sampling import indices_at_fps, indices_of_count


@pytest.mark.parametrize(("fps", "count"), [(0.5, 4), (1.0, 6), (2.0, 12), (4.0, 24), (0.0, 4), (-1.0, 4)])
def test_a_six_second_clip_gives_what_vllm_was_seen_to_take(fps: float, count: int) -> None:
    """150 frames at 25/s: as many frames as a served checkpoint counted tokens for (140 a pair of frames)."""
    assert len(indices_at_fps(150, 25.0, fps)) == count


def test_first_and_last_frame_are_among_them() -> None:
    """Frames are spread from the first to the last, 13 apart for 12 of 144."""
    assert indices_at_fps(144, 24.0, 2.0) == [0, 13, 26, 39, 52, 65, 78, 91, 104, 117, 130, 143]


def test_the_count_is_even() -> None:
    """5.5 s at 2 frames a second is 11 frames, and 10 are taken: the encoder folds two into one."""
    assert len(indices_at_fps(165, 30.0, 2.0)) == 10


def test_a_float_rate_does_not_lose_a_frame() -> None:
    """180 frames at 30000/1001 last 6.006 s: 12 frames, although the rate is no exact float."""
    assert len(indices_at_fps(180, 30000 / 1001, 2.0)) == 12


@pytest.mark.parametrize(("frames", "count"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4)])
def test_a_clip_gives_no_more_frames_than_it_has(frames: int, count: int) -> None:
    """Fewer than four frames give what there is, in pairs; a single frame gives itself."""
    found = indices_at_fps(frames, 25.0, 2.0)
    assert len(found) == count == len(set(found))


def test_the_maximum_bounds_a_long_film() -> None:
    """An hour at 24 frames a second asked for at 24 gives 768 frames; an endless rate no more."""
    assert len(indices_at_fps(86_400, 24.0, 24.0)) == 768
    assert len(indices_at_fps(86_400, 24.0, math.inf)) == 768


def test_nonsense_is_refused() -> None:
    """A rate that is no number is the caller's, a source without a rate the file's."""
    with pytest.raises(InvalidRequest, match="fps is not a number"):
        indices_at_fps(10, 25.0, math.nan)
    with pytest.raises(InvalidRequest, match="contradict"):
        indices_at_fps(10, 25.0, 1.0, minimum=5, maximum=4)
    with pytest.raises(InvalidMedia, match="frame rate of 0"):
        indices_at_fps(10, 0.0, 1.0)


def test_a_count_is_spread_evenly() -> None:
    """Four of ten are 0, 3, 6, 9; one is the first; -1 and more than there are give all."""
    assert indices_of_count(10, 4) == [0, 3, 6, 9]
    assert indices_of_count(10, 1) == [0]
    assert indices_of_count(3, -1) == indices_of_count(3, 99) == [0, 1, 2]
    assert indices_of_count(0, 4) == []


def test_no_frames_cannot_be_asked_for() -> None:
    """A count of 0 is a mistake, not an empty answer."""
    with pytest.raises(InvalidRequest, match="0 frames asked for"):
        indices_of_count(10, 0)

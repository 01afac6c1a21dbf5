"""Sound frames that come without a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from vision_bench.media.exact import _timed


@dataclass
class Sound:
    pts: int | None
    time_base: Fraction | None = Fraction(1, 1000)
    samples: int = 480
    sample_rate: int = 48_000


def test_a_frame_without_a_time_starts_where_the_one_before_it_ends() -> None:
    """The first, when it has none, starts where the track does; those that have one keep it."""
    frames = [Sound(None), Sound(None), Sound(100), Sound(None), Sound(None, None)]
    timed = [(frame.pts, frame.time_base) for frame in _timed(frames, 0.5)]
    tick = Fraction(1, 1000)
    assert timed == [(500, tick), (510, tick), (100, tick), (110, tick), (5760, Fraction(1, 48_000))]

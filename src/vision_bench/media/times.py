"""Arithmetic of presentation times: ticks in, rates and clip borders out. Needs the stdlib alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

MAX_START_GAP_SECONDS = Fraction(1)
"""A clip starts at its first frame when that comes within this of its nominal start; else at the nominal start."""

_COMMON_RATES = tuple(Fraction(n) for n in (24, 25, 30, 50, 60, 120)) + tuple(
    Fraction(n * 1000, 1001) for n in (24, 30, 60, 120)
)


def steady_rate(pts: Sequence[int], time_base: Fraction, hints: Iterable[Fraction | None] = ()) -> Fraction | None:
    """The constant frame rate that explains every time, or None.

    A container rounds times to its ticks, so a frame may lie one tick from its ideal place and no further.

    Args:
        pts: (N,) ascending presentation times in ticks.
        time_base: seconds a tick.
        hints: rates to try first (a header's claim; proved or dropped here), frames per second.
    """
    if len(pts) < 2 or pts[-1] <= pts[0]:
        return None
    mean = Fraction(len(pts) - 1) / ((pts[-1] - pts[0]) * time_base)
    for rate in (*hints, *_COMMON_RATES, mean):
        if not rate or rate <= 0 or abs(rate - mean) > mean / 50:
            continue
        # Compared as integers: Fractions would make a two-hour film take seconds.
        step_num, step_den = (1 / (rate * time_base)).as_integer_ratio()
        if all(abs((tick - pts[0]) * step_den - index * step_num) <= step_den for index, tick in enumerate(pts)):
            return rate
    return None


@dataclass(frozen=True, slots=True)
class PictureTimes:
    """When each frame of a picture track is shown. Zero is the first frame, whatever the container's clock says.

    Attributes:
        pts: (N,) ascending presentation times in ticks of the container, N >= 1.
        time_base: seconds a tick.
        rate: frames per second when constant, else None.
        last_duration: ticks for which the last frame is shown.
        is_decoded: the packets had no times of their own, so these were found by decoding.
    """

    pts: tuple[int, ...]
    time_base: Fraction
    rate: Fraction | None
    last_duration: int
    is_decoded: bool = False

    @property
    def duration(self) -> Fraction:
        """Seconds from the first frame to the end of the last."""
        return self.start_of(len(self.pts) - 1) + self.last_duration * self.time_base

    @property
    def mean_rate(self) -> Fraction | None:
        """Frames per second over the whole track; None for a single frame of unknown length."""
        if self.rate is not None:
            return self.rate
        return len(self.pts) / self.duration if self.duration > 0 else None

    def start_of(self, index: int) -> Fraction:
        """Seconds at which frame ``index`` appears."""
        return (self.pts[index] - self.pts[0]) * self.time_base

    def first_at_or_after(self, seconds: Fraction) -> int:
        """Index of the first frame with start >= ``seconds``; N when there is none."""
        return bisect_left(self.pts, ceil(seconds / self.time_base) + self.pts[0])

    def border(self, seconds: Fraction) -> Fraction:
        """Where a clip border wanted at ``seconds`` falls, for the picture and for the sound.

        It is the first frame at or after it, so a clip starts on a frame and the sound of two neighbours meets without
        a gap or an overlap. In a hole of over a second, and after the last frame, it stays where it was wanted.
        """
        index = self.first_at_or_after(seconds)
        if index == len(self.pts):
            return max(seconds, min(self.duration, seconds + MAX_START_GAP_SECONDS))
        found = self.start_of(index)
        return found if found - seconds <= MAX_START_GAP_SECONDS else seconds

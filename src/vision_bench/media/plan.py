"""Which frames and which stretch of sound go into which clip. Arithmetic alone: nothing is read or written here."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from vision_bench.errors import InvalidRequest
from vision_bench.media.layout import clip_name
from vision_bench.media.times import PictureTimes

MOST_WINDOWS = 100_000
"""Clips of one source: a week in six-second clips. More is a slip of the keyboard."""


@dataclass(frozen=True, slots=True)
class Window:
    """One clip to be: seconds count from the source's first frame.

    Attributes:
        seq: number in the plan, from 1.
        start: nominal start; frames with start <= time < end belong to the clip.
        end: nominal end.
        first: index of its first frame.
        stop: one past the index of its last frame; equal to ``first`` when the source has none for it.
        origin: what becomes 0 in the clip, for picture and sound alike.
        sound_end: where its sound stops: the origin of the next clip, so that no sample is lost or heard twice.
        held: seconds of the window that the source really covers.
    """

    seq: int
    start: Fraction
    end: Fraction
    first: int
    stop: int
    origin: Fraction
    sound_end: Fraction
    held: Fraction

    @property
    def frames(self) -> int:
        return self.stop - self.first

    @property
    def name(self) -> str:
        return clip_name(self.seq, self.start, self.end)

    @property
    def is_short(self) -> bool:
        """The source ends inside the window. Half a hundredth of a second is a rounding, not an end."""
        return self.held < self.end - self.start - Fraction(1, 200)


@dataclass(frozen=True, slots=True)
class Plan:
    """``asked`` windows; ``cut`` are worth cutting; ``skipped`` pairs a window with the reason."""

    asked: int
    cut: tuple[Window, ...]
    skipped: tuple[tuple[Window, str], ...]


def plan_windows(
    times: PictureTimes, *, start: Fraction, end: Fraction | None, length: Fraction, min_remainder: Fraction
) -> Plan:
    """Cut [start, end) into windows of ``length`` seconds; the last may be shorter.

    Args:
        times: when each frame of the source is shown.
        end: seconds; None is the end of the source.
        min_remainder: a window of which the source covers less is skipped, unless it is the first.

    Raises:
        InvalidRequest: a range or a length that holds nothing.
    """
    source_end = times.duration
    if length <= 0 or start < 0 or (end is not None and end <= start):
        shown = "the end" if end is None else f"{float(end):g} s"
        raise InvalidRequest(
            f"cannot cut from {float(start):g} s to {shown} in steps of {float(length):g} s; "
            "give 0 <= start < end and a length above 0"
        )
    if end is None:
        # As many as the last frame needs: what it is shown for past a border is no clip of its own.
        asked = max(0, floor((times.start_of(len(times.pts) - 1) - start) / length) + 1)
        end = start + asked * length
    else:
        asked = ceil((end - start) / length)
    if asked > MOST_WINDOWS:
        raise InvalidRequest(
            f"{asked} clips of {float(length):g} s are more than {MOST_WINDOWS}; "
            "choose a longer --length, or `--end end` for the end of the source"
        )
    cut: list[Window] = []
    skipped: list[tuple[Window, str]] = []
    for index in range(asked):
        window = _window(times, index + 1, start + index * length, min(start + (index + 1) * length, end))
        reason = _reason_to_skip(window, source_end, min_remainder, is_first=index == 0)
        if reason is None:
            cut.append(window)
        else:
            skipped.append((window, reason))
    return Plan(asked, tuple(cut), tuple(skipped))


def _window(times: PictureTimes, seq: int, start: Fraction, end: Fraction) -> Window:
    return Window(
        seq=seq,
        start=start,
        end=end,
        first=times.first_at_or_after(start),
        stop=times.first_at_or_after(end),
        origin=times.border(start),
        sound_end=times.border(end),
        held=max(Fraction(0), min(times.duration, end) - start),
    )


def _reason_to_skip(window: Window, source_end: Fraction, min_remainder: Fraction, *, is_first: bool) -> str | None:
    if not window.frames:
        if window.held:
            return f"no frame between {float(window.start):g} s and {float(window.end):g} s"
        return f"starts at {float(window.start):g} s, after the source's end at {float(source_end):.3f} s"
    if window.held < min_remainder and window.is_short and not is_first:
        return f"a remainder of {float(window.held):.3f} s, under the minimum of {float(min_remainder):g} s"
    return None


def has_sound_in(packet_seconds: list[float], start_seconds: float, end_seconds: float) -> bool:
    """Some sound packet starts in [start, end). ``packet_seconds``: ascending."""
    at = bisect_left(packet_seconds, start_seconds)
    return at < len(packet_seconds) and packet_seconds[at] < end_seconds


def chunks(windows: tuple[Window, ...], *, jobs: int, largest: int) -> list[tuple[Window, ...]]:
    """Runs of neighbouring windows, at most ``largest`` long and of nearly one length.

    There are as many as fill ``jobs`` workers a whole number of times, so that none works alone at the end.
    """
    count = min(len(windows), ceil(len(windows) / (largest * jobs)) * jobs)
    runs: list[list[Window]] = []
    for number in range(count):
        start, stop = (len(windows) * edge // count for edge in (number, number + 1))
        runs.append([])
        for window in windows[start:stop]:
            if runs[-1] and runs[-1][-1].seq + 1 != window.seq:
                runs.append([])
            runs[-1].append(window)
    return [tuple(run) for run in runs if run]

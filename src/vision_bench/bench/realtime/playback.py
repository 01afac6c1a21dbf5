"""Playback picture by picture: which were late, where the player stood still, what counts as a freeze.

Chunk-level playback is the published one (``metrics.simulate_playback``). Here a picture counts from the moment it can
be decoded, which is a frame later than announced. Two players are asked. One waits: it stands still until the picture
is there, and everything after moves back (stalls, freezes). The other keeps its schedule: a picture is late or in time
against the start alone (deadline misses, continuous play), so one long wait shows in all that follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vision_bench.bench.realtime.metrics import ChunkRecord
from vision_bench.bench.realtime.records import NS_PER_MS, NS_PER_SECOND

FREEZE_FACTOR = 3.0
FREEZE_INCREASE_MS = 150.0
FREEZE_WINDOW = 30
"""Intervals whose mean a freeze is judged against, the judged one included, as in libwebrtc."""
FREEZE_MIN_INTERVALS = 5


@dataclass(frozen=True, slots=True)
class Stall:
    """The player stood still before the picture at ``media_seconds`` for ``duration_ms``."""

    media_seconds: float
    duration_ms: float


@dataclass(frozen=True, slots=True)
class FramePlayback:
    """One session's pictures at one rate, from one start."""

    frames: int
    shown_ns: tuple[int, ...]
    """(N,) when the waiting player shows each picture, ascending."""
    stalls: tuple[Stall, ...]
    late_frames: int
    """Pictures not decodable at start + i / fps."""
    late_ratio: float | None
    worst_lateness_ms: float | None
    """Of the latest picture behind that schedule; 0 when all are in time, None without pictures."""


@dataclass(frozen=True, slots=True)
class Stalling:
    """What ITU-T P.1203 asks about stalling: the wait before the first picture, and each one after it."""

    initial_loading_ms: float | None
    stall_count: int
    total_stall_ms: float
    longest_stall_ms: float | None
    mean_seconds_between_stalls: float | None
    """Media time between the starts of stalls that follow each other; None below two."""
    stall_ratio: float | None
    """Stalled time / (stalled time + media time), without the initial loading."""

    events: tuple[tuple[float, float], ...]
    """(media time, duration) in seconds, ascending, the initial loading first, as P.1203 tools read them."""


@dataclass(frozen=True, slots=True)
class Freezes:
    """Freezes by the rule of WebRTC's ``freezeCount``."""

    intervals: int
    count: int | None
    """None below five intervals: the rule has nothing to compare with."""
    total_ms: float | None
    """Whole intervals, as ``totalFreezesDuration`` has them: the usual gap between two pictures is in it."""
    ratio: float | None
    """Of the time from the first picture shown to the last."""


@dataclass(frozen=True, slots=True)
class ContinuousPlay:
    """Share of chunks that were there when playback needed them, averaged over sessions."""

    sessions: int
    """Sessions in the average."""
    sessions_not_played: int
    """Measured sessions that never filled the buffer; they have no ratio and are not in the average."""
    ratios: tuple[float, ...]
    """One a session in the average."""

    @property
    def mean(self) -> float | None:
        """The average; None of no session."""
        return math.fsum(self.ratios) / len(self.ratios) if self.ratios else None


def play_frames(decodable_ns: Sequence[int], *, fps: float, start_ns: int) -> FramePlayback:
    """Play pictures that become decodable at ``decodable_ns`` from ``start_ns`` on.

    Args:
        decodable_ns: (N,) monotonic ns, in picture order.
        fps: rate at which someone means to watch.
        start_ns: when playback starts, usually the arrival of the chunk that fills the buffer.

    Raises:
        ValueError: a rate that is not above 0.
    """
    if not fps > 0:
        raise ValueError(f"fps is {fps}; a playing rate must be above 0.")
    shown: list[int] = []
    stalls: list[Stall] = []
    late = 0
    worst_ns = 0
    delay_ns = 0
    for index, ready_ns in enumerate(decodable_ns):
        # From the start each time: adding rounded periods would drift.
        schedule_ns = start_ns + round(index * NS_PER_SECOND / fps)
        late += ready_ns > schedule_ns
        worst_ns = max(worst_ns, ready_ns - schedule_ns)
        if ready_ns > schedule_ns + delay_ns:
            stalls.append(Stall(index / fps, (ready_ns - schedule_ns - delay_ns) / NS_PER_MS))
            delay_ns = ready_ns - schedule_ns
        shown.append(schedule_ns + delay_ns)
    count = len(shown)
    return FramePlayback(
        frames=count,
        shown_ns=tuple(shown),
        stalls=tuple(stalls),
        late_frames=late,
        late_ratio=late / count if count else None,
        worst_lateness_ms=worst_ns / NS_PER_MS if count else None,
    )


def stalling(playback: FramePlayback, *, fps: float, start_sent_ns: int) -> Stalling:
    """The stalls of ``playback`` as P.1203 describes them; the wait for its first picture is the initial loading."""
    # A wait at media time 0 comes before anything was shown: it is loading, not a stall.
    stalls = [stall for stall in playback.stalls if stall.media_seconds > 0]
    loading_ms = (playback.shown_ns[0] - start_sent_ns) / NS_PER_MS if playback.frames else None
    total_ms = math.fsum(stall.duration_ms for stall in stalls)
    media_ms = playback.frames / fps * 1000.0
    gaps = [after.media_seconds - before.media_seconds for before, after in pairwise(stalls)]
    loading = [] if loading_ms is None else [(0.0, loading_ms / 1000.0)]
    return Stalling(
        initial_loading_ms=loading_ms,
        stall_count=len(stalls),
        total_stall_ms=total_ms,
        longest_stall_ms=max((stall.duration_ms for stall in stalls), default=None),
        mean_seconds_between_stalls=math.fsum(gaps) / len(gaps) if gaps else None,
        stall_ratio=total_ms / (total_ms + media_ms) if playback.frames else None,
        events=(*loading, *((stall.media_seconds, stall.duration_ms / 1000.0) for stall in stalls)),
    )


def freezes(shown_ns: Sequence[int]) -> Freezes:
    """Intervals between shown pictures that are at least max(3 m, m + 150 ms), m the mean of the last 30 of them.

    Args:
        shown_ns: (N,) when each picture was shown, ascending.
    """
    gaps_ms = [(after - before) / NS_PER_MS for before, after in pairwise(shown_ns)]
    if len(gaps_ms) < FREEZE_MIN_INTERVALS:
        return Freezes(len(gaps_ms), None, None, None)
    frozen_ms = []
    for place in range(FREEZE_MIN_INTERVALS, len(gaps_ms) + 1):
        window = gaps_ms[max(0, place - FREEZE_WINDOW) : place]
        mean_ms = math.fsum(window) / len(window)
        if window[-1] >= max(FREEZE_FACTOR * mean_ms, mean_ms + FREEZE_INCREASE_MS):
            frozen_ms.append(window[-1])
    span_ms = (shown_ns[-1] - shown_ns[0]) / NS_PER_MS
    total_ms = math.fsum(frozen_ms)
    return Freezes(len(gaps_ms), len(frozen_ms), total_ms, total_ms / span_ms if span_ms > 0 else None)


def playback_start_s(records: Sequence[ChunkRecord], *, buffer_chunks: int = 1) -> float | None:
    """Arrival of the chunk that fills the buffer, in seconds of the records; None when it never came.

    Raises:
        ValueError: a buffer below 1.
    """
    if buffer_chunks < 1:
        raise ValueError(f"buffer_chunks is {buffer_chunks}; playback starts with at least 1 chunk.")
    ordered = sorted(records, key=lambda record: record.index)
    return ordered[buffer_chunks - 1].arrival_s if buffer_chunks <= len(ordered) else None


def continuous_play_ratio(records: Sequence[ChunkRecord], *, fps: float, buffer_chunks: int = 1) -> float | None:
    """Share of one session's chunks that came by start + (pictures before them) / fps.

    The schedule is anchored where the buffer was filled and does not move: a player that waits is not asked here. None
    when the buffer was never filled.

    Raises:
        ValueError: a rate that is not above 0, or a buffer below 1.
    """
    if not fps > 0:
        raise ValueError(f"fps is {fps}; a playing rate must be above 0.")
    start_s = playback_start_s(records, buffer_chunks=buffer_chunks)
    if start_s is None:
        return None
    ready = frames_before = 0
    for record in sorted(records, key=lambda record: record.index):
        ready += record.arrival_s <= start_s + frames_before / fps
        frames_before += record.num_frames
    return ready / len(records)


def continuous_play(sessions: Sequence[Sequence[ChunkRecord]], *, fps: float, buffer_chunks: int = 1) -> ContinuousPlay:
    """:func:`continuous_play_ratio` over measured sessions, each weighing the same; leave warm-up sessions out.

    Raises:
        ValueError: a rate that is not above 0, or a buffer below 1.
    """
    ratios = [continuous_play_ratio(records, fps=fps, buffer_chunks=buffer_chunks) for records in sessions]
    played = tuple(ratio for ratio in ratios if ratio is not None)
    return ContinuousPlay(len(played), len(ratios) - len(played), played)

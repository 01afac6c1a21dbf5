"""One session's chunk records to the published report's numbers, and several sessions to one.

Names, keys, values for empty sets and error conditions are those of the LingBot-World benchmark (docs/metrics.md), so
that a report of its and one of ours can be laid side by side: here, and only here, an empty set is ``{}`` and a ratio
without a denominator 0.0. What the other modules of this folder compute has None there.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.bench.realtime.workload import DEFAULT_WARMUP_CHUNKS, pixel_frames_in_chunk
from vision_bench.stats import percentile

__all__ = [
    "ChunkRecord",
    "PlaybackResult",
    "aggregate_metrics",
    "compute_metrics",
    "percentile",
    "simulate_playback",
    "steady_chunk_deadline_ms",
]


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One media chunk as the client saw it; a session's trailer makes no record."""

    index: int
    """Place in the rollout, from 0."""
    arrival_s: float
    """Seconds from ``session.start`` having been written to this chunk's bytes being there."""
    inter_arrival_s: float
    """Seconds since the chunk before; of the first chunk, since ``session.start``."""
    byte_length: int
    num_frames: int
    """Pictures that the server announced for it."""

    def to_dict(self) -> dict[str, Any]:
        """The record as the report prints it."""
        return {
            "index": self.index,
            "arrival_s": self.arrival_s,
            "inter_arrival_ms": self.inter_arrival_s * 1000.0,
            "byte_length": self.byte_length,
            "num_frames": self.num_frames,
        }


@dataclass(frozen=True, slots=True)
class PlaybackResult:
    """What a viewer saw, for one start buffer and one rate."""

    underrun_count: int
    total_stall_s: float
    playback_span_s: float
    """From the first picture shown to the last one's end, stalls included."""
    first_underrun_chunk: int | None
    """Index of the first chunk that came too late; None when none did."""

    def to_dict(self) -> dict[str, Any]:
        """The result as the report prints it; the stall ratio is stall / span, 0.0 of no span."""
        return {
            "underrun_count": self.underrun_count,
            "total_stall_ms": self.total_stall_s * 1000.0,
            "playback_span_s": self.playback_span_s,
            "stall_ratio": _ratio(self.total_stall_s, self.playback_span_s),
            "first_underrun_chunk": self.first_underrun_chunk,
        }


def simulate_playback(records: Sequence[ChunkRecord], *, fps: float, buffer_chunks: int = 1) -> PlaybackResult:
    """Play the chunks at ``fps`` once ``buffer_chunks`` of them are there, and count the waits.

    A chunk that comes after the moment its first picture is due is an underrun; the player stands still until it comes
    and goes on from there. One that comes at that very moment is in time. No records give a result of zeros.

    Raises:
        ValueError: a rate that is not above 0, a buffer below 1, or one deeper than the chunks received.
    """
    _check_rate(fps)
    if buffer_chunks < 1:
        raise ValueError(f"buffer_chunks is {buffer_chunks}; playback starts with at least 1 chunk.")
    if not records:
        return PlaybackResult(0, 0.0, 0.0, None)
    if buffer_chunks > len(records):
        raise ValueError(f"buffer_chunks is {buffer_chunks}, and only {len(records)} chunks came: it never starts.")

    ordered = _in_order(records)
    start = ordered[buffer_chunks - 1].arrival_s
    due = start
    underruns = 0
    total_stall_s = 0.0
    first_underrun: int | None = None
    for record in ordered:
        if record.arrival_s > due:
            underruns += 1
            total_stall_s += record.arrival_s - due
            first_underrun = record.index if first_underrun is None else first_underrun
            due = record.arrival_s
        due += record.num_frames / fps
    return PlaybackResult(underruns, total_stall_s, due - start, first_underrun)


def steady_chunk_deadline_ms(fps: float) -> float:
    """Milliseconds that a chunk of 12 pictures may take if it is to be played at ``fps`` without a wait.

    ``fps`` is the rate at which someone means to watch. The model has none of its own, and the one in the file is a
    label: whoever reports a deadline states the rate.

    Raises:
        ValueError: a rate that is not above 0.
    """
    _check_rate(fps)
    return pixel_frames_in_chunk(1) / fps * 1000.0


def compute_metrics(
    records: Sequence[ChunkRecord],
    *,
    fps: float,
    warmup_chunks: int = DEFAULT_WARMUP_CHUNKS,
    slo_ms: float | None = None,
    playback_buffer_chunks: int = 1,
    ttfc_s: float | None = None,
    session_wall_s: float | None = None,
) -> dict[str, Any]:
    """One session as the report prints it; docs/metrics.md has the formula of each key.

    Args:
        records: media chunks in any order, at least one.
        fps: rate at which the video is meant to be watched.
        warmup_chunks: chunks that the steady numbers leave out, from the start.
        slo_ms: deadline of a steady chunk; without it, its own playing time.
        playback_buffer_chunks: chunks that must be there before playback starts.
        ttfc_s: time to first chunk; its key is absent when it is not given.
        session_wall_s: ``session.start`` written to ``session.done``; without it, the last arrival.

    Raises:
        ValueError: no records, a negative warm-up, a rate that is not above 0, or what the playback refuses.
    """
    if not records:
        raise ValueError("No chunk was received; there is nothing to compute.")
    if warmup_chunks < 0:
        raise ValueError(f"warmup_chunks is {warmup_chunks}; it must be 0 or more.")
    _check_rate(fps)
    ordered = _in_order(records)
    # The terminal chunk prepares no successor and is cheaper for it: not steady, but played like any other.
    steady = [record for record in ordered[:-1] if record.index >= warmup_chunks and record.index > 0]
    deadline_ms = steady_chunk_deadline_ms(fps) if slo_ms is None else slo_ms
    total_frames = sum(record.num_frames for record in ordered)
    video_seconds = total_frames / fps
    wall_seconds = ordered[-1].arrival_s if session_wall_s is None else session_wall_s

    metrics: dict[str, Any] = {
        "chunks_received": len(ordered),
        "warmup_chunks": warmup_chunks,
        "steady_chunks": len(steady),
        "steady_state_reached": bool(steady),
        "total_frames": total_frames,
        "total_bytes": sum(record.byte_length for record in ordered),
        "video_seconds": video_seconds,
        "wall_seconds": wall_seconds,
        # RTF is work over content, below 1 faster than real time; RTFX is its inverse, the share of real time reached.
        "video_rtf": _ratio(wall_seconds, video_seconds),
        "video_rtfx": _ratio(video_seconds, wall_seconds),
        "frames_per_second": _ratio(total_frames, wall_seconds),
        "chunk_deadline_ms": deadline_ms,
        "interval_all": _interval_summary(ordered[1:]),
        "interval_steady": _interval_summary(steady),
    }
    if ttfc_s is not None:
        metrics["ttfc_ms"] = ttfc_s * 1000.0
    if steady:
        metrics |= _steady_metrics(steady, fps=fps, deadline_ms=deadline_ms)
    playback = simulate_playback(ordered, fps=fps, buffer_chunks=playback_buffer_chunks)
    metrics["playback"] = {**playback.to_dict(), "buffer_chunks": playback_buffer_chunks}
    return metrics


def aggregate_metrics(sessions: Iterable[Mapping[str, Any]], *, fps: float) -> dict[str, Any]:
    """Several sessions' metrics as one; a single session comes back as it is, with ``sessions`` = 1.

    Steady intervals are pooled: a session's mean weighs as many intervals as it stands on. ``fps`` is part of the
    published signature; the sessions already carry what was computed with it.

    Raises:
        ValueError: no session, or sessions that were held to different deadlines.
    """
    entries = list(sessions)
    if not entries:
        raise ValueError("No session was measured; there is nothing to combine.")
    if len(entries) == 1:
        return {**entries[0], "sessions": 1}
    deadlines_ms = {entry["chunk_deadline_ms"] for entry in entries}
    if len(deadlines_ms) > 1:
        raise ValueError(f"The sessions have different chunk deadlines ({sorted(deadlines_ms)} ms); combine equals.")

    rtfs = [float(entry["video_rtf"]) for entry in entries]
    ttfcs_ms = [float(entry["ttfc_ms"]) for entry in entries if entry.get("ttfc_ms") is not None]
    steady = [entry["interval_steady"] for entry in entries if entry.get("interval_steady", {}).get("count")]
    means_ms = [float(summary["mean_ms"]) for summary in steady]
    intervals = sum(summary["count"] for summary in steady)
    pooled_ms = sum(summary["mean_ms"] * summary["count"] for summary in steady)
    return {
        "sessions": len(entries),
        "chunks_received": sum(int(entry["chunks_received"]) for entry in entries),
        "total_frames": sum(int(entry["total_frames"]) for entry in entries),
        "video_seconds": sum(float(entry["video_seconds"]) for entry in entries),
        "wall_seconds": sum(float(entry["wall_seconds"]) for entry in entries),
        "video_rtf_mean": sum(rtfs) / len(rtfs),
        "video_rtf_best": min(rtfs),
        "video_rtf_worst": max(rtfs),
        "ttfc_ms_mean": sum(ttfcs_ms) / len(ttfcs_ms) if ttfcs_ms else None,
        "ttfc_ms_max": max(ttfcs_ms, default=None),
        "steady_interval_ms_mean": pooled_ms / intervals if intervals else None,
        "steady_interval_ms_spread": max(means_ms) - min(means_ms) if means_ms else None,
        "underrun_count": sum(int(entry["playback"]["underrun_count"]) for entry in entries),
        "chunk_deadline_ms": entries[0]["chunk_deadline_ms"],
    }


def _steady_metrics(steady: Sequence[ChunkRecord], *, fps: float, deadline_ms: float) -> dict[str, Any]:
    """The keys that exist only when there is a steady chunk."""
    work_seconds = sum(record.inter_arrival_s for record in steady)
    video_seconds = sum(record.num_frames for record in steady) / fps
    in_time = sum(record.inter_arrival_s * 1000.0 <= deadline_ms for record in steady)
    return {
        "steady_video_rtf": _ratio(work_seconds, video_seconds),
        "steady_video_rtfx": _ratio(video_seconds, work_seconds),
        "slo_attainment": in_time / len(steady),
        "slo_violations": len(steady) - in_time,
    }


def _interval_summary(records: Sequence[ChunkRecord]) -> dict[str, float]:
    """Milliseconds between chunks, described as the report does: a float count, p95 of any sample, {} of none."""
    values_ms = [record.inter_arrival_s * 1000.0 for record in records]
    if not values_ms:
        return {}
    return {
        "count": float(len(values_ms)),
        "mean_ms": sum(values_ms) / len(values_ms),
        "median_ms": percentile(values_ms, 0.5),
        "std_ms": statistics.stdev(values_ms) if len(values_ms) > 1 else 0.0,
        "min_ms": min(values_ms),
        "p90_ms": percentile(values_ms, 0.90),
        "p95_ms": percentile(values_ms, 0.95),
        "p99_ms": percentile(values_ms, 0.99),
        "max_ms": max(values_ms),
    }


def _in_order(records: Sequence[ChunkRecord]) -> list[ChunkRecord]:
    return sorted(records, key=lambda record: record.index)


def _check_rate(fps: float) -> None:
    if not fps > 0:
        raise ValueError(f"fps is {fps}; a playing rate must be above 0.")


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else 0.0

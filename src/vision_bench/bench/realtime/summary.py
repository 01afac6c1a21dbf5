"""The sessions of a step as one strict JSON object: every number of this folder with its count, or why it is missing.

Warm-up sessions are counted and otherwise left out; only cold against warm, and the queue, look at them. A measured
session without a first chunk counts as infinite where first chunks are timed: who never came is not on time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vision_bench.bench.column import column
from vision_bench.bench.realtime.drift import interval_drift
from vision_bench.bench.realtime.integrity import Integrity, check_stream
from vision_bench.bench.realtime.interactions import summarise_interactions
from vision_bench.bench.realtime.metrics import ChunkRecord, steady_chunk_deadline_ms
from vision_bench.bench.realtime.playback import continuous_play, freezes, play_frames, stalling
from vision_bench.bench.realtime.records import NS_PER_SECOND, SessionObservation
from vision_bench.bench.realtime.sessions import (
    cold_and_warm,
    playback_start_ns,
    queue_waits_ms,
    startup,
    stop_to_done_ms,
)
from vision_bench.bench.realtime.workload import DEFAULT_WARMUP_CHUNKS
from vision_bench.stats import wilson_interval

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Basis:
    """What the numbers are taken against; it is printed with them."""

    fps: float
    """The rate at which somebody watches."""
    width: int
    height: int
    buffer_chunks: int = 1
    warmup_chunks: int = DEFAULT_WARMUP_CHUNKS
    slo_ms: float | None = None
    """Deadline of a steady chunk; None: its own playing time."""
    server_slots: int = 1
    """Sessions that the server generates at a time."""
    server_was_fresh: bool = False
    """The first session was the server's first: only then is there a cold one."""

    @property
    def chunk_deadline_ms(self) -> float:
        """The deadline in force."""
        return steady_chunk_deadline_ms(self.fps) if self.slo_ms is None else self.slo_ms


def summarise_sessions(sessions: Sequence[SessionObservation], *, basis: Basis) -> Json:
    """All numbers of ``sessions``, given in the order in which they started.

    Raises:
        ValueError: a basis that no player could use.
    """
    measured = [session for session in sessions if not session.is_warmup]
    return {
        "basis": {**asdict(basis), "chunk_deadline_ms": basis.chunk_deadline_ms},
        "sessions": {
            "measured": len(measured),
            "warmup": len(sessions) - len(measured),
            "outcomes": dict(Counter(session.outcome for session in measured)),
        },
        "startup": _startup(measured, basis),
        "chunks": _chunks(measured, basis),
        "pictures": _pictures(measured, basis),
        "interactions": _interactions(measured),
        "drift": _drift(measured, basis),
        "cold": _cold(sessions) if basis.server_was_fresh else None,
        "stop_to_done_ms": column(_known(stop_to_done_ms(session.times) for session in measured)),
        "queue_wait_ms": _queue(sessions, basis),
        "integrity": _integrity(measured, basis),
    }


def _startup(measured: Sequence[SessionObservation], basis: Basis) -> Json:
    waits = [
        startup(
            session.times,
            session.arrivals,
            buffer_chunks=basis.buffer_chunks,
            decodable_ns=session.decodable_ns,
        )
        for session in measured
    ]
    return {
        "connect_ms": column(_known(wait.connect_ms for wait in waits)),
        "video_start_ms": column(_or_never(wait.video_start_ms for wait in waits)),
        "first_byte_ms": column(_known(wait.first_byte_ms for wait in waits)),
        "ttfc_ms": column(_or_never(wait.ttfc_ms for wait in waits)),
        "first_decodable_frame_ms": column(_or_never(wait.first_decodable_frame_ms for wait in waits)),
        "playback_start_ms": column(_or_never(wait.playback_start_ms for wait in waits)),
    }


def _chunks(measured: Sequence[SessionObservation], basis: Basis) -> Json:
    records = [session.records for session in measured]
    steady_ms = [gap_ms for session in records for gap_ms in _steady_ms(session, basis.warmup_chunks)]
    met = sum(gap_ms <= basis.chunk_deadline_ms for gap_ms in steady_ms)
    interval = wilson_interval(met, len(steady_ms)) if steady_ms else None
    whole = [(session, chunks) for session, chunks in zip(measured, records, strict=True) if session.outcome == "ok"]
    return {
        "received": sum(len(session) for session in records),
        "interval_all_ms": column([record.inter_arrival_s * 1000.0 for session in records for record in session[1:]]),
        "interval_steady_ms": column(steady_ms),
        "deadlines": {
            "met": met,
            "missed": len(steady_ms) - met,
            "attainment": met / len(steady_ms) if steady_ms else None,
            "interval": None if interval is None else [interval.low, interval.high],
        },
        "video_rtf": column(_known(_rtf(session, chunks, basis.fps) for session, chunks in whole)),
    }


def _pictures(measured: Sequence[SessionObservation], basis: Basis) -> Json:
    played = []
    for session in measured:
        pictures = session.decodable_ns
        start_ns = playback_start_ns(session.arrivals, pictures, buffer_chunks=basis.buffer_chunks)
        if start_ns is not None:
            played.append((session, play_frames(pictures, fps=basis.fps, start_ns=start_ns)))
    stalls = [stalling(one, fps=basis.fps, start_sent_ns=session.times.start_sent_ns) for session, one in played]
    frozen = [freezes(one.shown_ns) for _, one in played]
    judged = [one for one in frozen if one.count is not None]
    play = continuous_play([session.records for session in measured], fps=basis.fps, buffer_chunks=basis.buffer_chunks)
    return {
        "sessions_played": len(played),
        "shown": sum(one.frames for _, one in played),
        "late": sum(one.late_frames for _, one in played),
        "late_ratio": column(_known(one.late_ratio for _, one in played)),
        "worst_lateness_ms": column(_known(one.worst_lateness_ms for _, one in played)),
        "stalls": sum(one.stall_count for one in stalls),
        "stalled_ms": math.fsum(one.total_stall_ms for one in stalls) if stalls else None,
        "stall_ratio": column(_known(one.stall_ratio for one in stalls)),
        "freezes": sum(one.count or 0 for one in judged) if judged else None,
        "freeze_sessions": len(judged),
        "frozen_ms": math.fsum(one.total_ms or 0.0 for one in judged) if judged else None,
        "freeze_ratio": column(_known(one.ratio for one in judged)),
        "continuous_play": {
            "sessions": play.sessions,
            "sessions_not_played": play.sessions_not_played,
            "mean": play.mean,
        },
    }


def _interactions(measured: Sequence[SessionObservation]) -> Json:
    found = asdict(summarise_interactions([(session.events, session.arrivals) for session in measured]))
    return {name: column(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _drift(measured: Sequence[SessionObservation], basis: Basis) -> Json:
    lines = [interval_drift(session.records, warmup_chunks=basis.warmup_chunks) for session in measured]
    known = [one for one in lines if one.ms_per_chunk is not None]
    return {
        "sessions": len(known),
        "sessions_too_short": len(lines) - len(known),
        "ms_per_chunk": column(_known(one.ms_per_chunk for one in known)),
        "slower": sum((one.low_ms_per_chunk or 0.0) > 0 for one in known),
        "faster": sum((one.high_ms_per_chunk or 0.0) < 0 for one in known),
    }


def _cold(sessions: Sequence[SessionObservation]) -> Json:
    found = cold_and_warm([startup(session.times, session.arrivals).ttfc_ms for session in sessions])
    return {
        "cold_ttfc_ms": found.cold_ttfc_ms,
        "warm_ttfc_ms": column(found.warm_ttfc_ms),
        "cold_penalty_ms": found.cold_penalty_ms,
    }


def _queue(sessions: Sequence[SessionObservation], basis: Basis) -> Json:
    waits = queue_waits_ms([session.times for session in sessions], slots=basis.server_slots)
    return column(_or_never(wait for session, wait in zip(sessions, waits, strict=True) if not session.is_warmup))


def _integrity(measured: Sequence[SessionObservation], basis: Basis) -> Json:
    found = [
        check_stream(session.arrivals, session.frames, width=basis.width, height=basis.height) for session in measured
    ]
    counts = ("chunks_of_other_length", "transport_gaps", "generation_gaps")
    decoded = ("pts_not_ascending", "frames_of_other_size", "repeated_frames")
    return {
        "streams": len(found),
        "whole": sum(one.is_whole for one in found),
        "decoded": sum(one.decoded_frames is not None for one in found),
        **{name: sum(getattr(one, name) for one in found) for name in counts},
        **{name: _sum_of_known(found, name) for name in decoded},
        "frames_missing": _frames_missing(found),
    }


def _sum_of_known(found: Sequence[Integrity], name: str) -> int | None:
    values = [value for one in found if (value := getattr(one, name)) is not None]
    return sum(values) if values else None


def _frames_missing(found: Sequence[Integrity]) -> int | None:
    """Pictures announced and not decoded, over the streams that were decoded; more than announced is not less."""
    missing = [one.expected_frames - one.decoded_frames for one in found if one.decoded_frames is not None]
    return sum(max(0, count) for count in missing) if missing else None


def _steady_ms(records: Sequence[ChunkRecord], warmup_chunks: int) -> list[float]:
    ordered = sorted(records, key=lambda record: record.index)
    return [
        record.inter_arrival_s * 1000.0 for record in ordered[:-1] if record.index >= warmup_chunks and record.index > 0
    ]


def _rtf(session: SessionObservation, records: Sequence[ChunkRecord], fps: float) -> float | None:
    """Session wall over what it gives to watch; None of no picture."""
    frames = sum(record.num_frames for record in records)
    if not frames:
        return None
    ends_ns = session.times.done_ns
    wall_s = records[-1].arrival_s if ends_ns is None else (ends_ns - session.times.start_sent_ns) / NS_PER_SECOND
    return wall_s / (frames / fps)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _or_never(values: Iterable[float | None]) -> list[float]:
    """What never happened took for ever."""
    return [math.inf if value is None else value for value in values]

"""What a viewer waits for around the video itself: startup, stop, queue, a cold server, a server that was left."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from vision_bench.bench.realtime.records import (
    ChunkArrival,
    SessionTimes,
    decodable_times_ns,
    media_chunks,
    milliseconds_between,
)
from vision_bench.stats import percentile

_NEVER_NS = 2**63


@dataclass(frozen=True, slots=True)
class Startup:
    """Milliseconds from ``session.start`` having been written, ``connect_ms`` excepted: that comes before."""

    connect_ms: float | None
    video_start_ms: float | None
    first_byte_ms: float | None
    ttfc_ms: float | None
    """First chunk, whole."""
    first_decodable_frame_ms: float | None
    playback_start_ms: float | None
    """The chunk that fills the buffer, or the first picture that can be decoded, whichever is later."""


@dataclass(frozen=True, slots=True)
class ColdWarm:
    """The first session after the server started, and those after it."""

    cold_ttfc_ms: float | None
    warm_ttfc_ms: tuple[float, ...]
    cold_penalty_ms: float | None
    """Cold minus the warm median."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The session after one whose client went away without a word."""

    next_ttfc_ms: float | None
    undisturbed_ttfc_ms: tuple[float, ...]
    ghost_penalty_ms: float | None
    """What the one that left cost the next: its TTFC minus the undisturbed median."""
    drop_to_first_chunk_ms: float | None
    """From the connection being dropped to the next session's first chunk."""


def startup(
    times: SessionTimes,
    arrivals: Sequence[ChunkArrival],
    *,
    buffer_chunks: int = 1,
    decodable_ns: Sequence[int] | None = None,
) -> Startup:
    """The waits before playback.

    Args:
        times: the session's moments.
        arrivals: its chunks in order of arrival.
        buffer_chunks: chunks that must be there before playback starts.
        decodable_ns: when each picture could be decoded, where somebody decoded; else taken from the announcements.

    Raises:
        ValueError: a buffer below 1.
    """
    zero_ns = times.start_sent_ns
    chunks = media_chunks(arrivals)
    pictures = decodable_times_ns(arrivals) if decodable_ns is None else decodable_ns
    starts_ns = playback_start_ns(arrivals, pictures, buffer_chunks=buffer_chunks)
    return Startup(
        connect_ms=milliseconds_between(times.connect_ns, times.connected_ns),
        video_start_ms=milliseconds_between(zero_ns, times.video_start_ns),
        first_byte_ms=milliseconds_between(zero_ns, times.first_byte_ns),
        ttfc_ms=milliseconds_between(zero_ns, chunks[0].arrival_ns if chunks else None),
        first_decodable_frame_ms=milliseconds_between(zero_ns, pictures[0] if pictures else None),
        playback_start_ms=milliseconds_between(zero_ns, starts_ns),
    )


def playback_start_ns(
    arrivals: Sequence[ChunkArrival], decodable_ns: Sequence[int], *, buffer_chunks: int = 1
) -> int | None:
    """When playback starts: the buffer is full and there is a picture to show. None when that never was.

    Raises:
        ValueError: a buffer below 1.
    """
    if buffer_chunks < 1:
        raise ValueError(f"buffer_chunks is {buffer_chunks}; playback starts with at least 1 chunk.")
    chunks = media_chunks(arrivals)
    if buffer_chunks > len(chunks) or not decodable_ns:
        return None
    return max(chunks[buffer_chunks - 1].arrival_ns, decodable_ns[0])


def stop_to_done_ms(times: SessionTimes) -> float | None:
    """From ``session.stop`` being written to ``session.done``; None without one of them."""
    return milliseconds_between(times.stop_sent_ns, times.done_ns)


def cold_and_warm(ttfcs_ms: Sequence[float | None]) -> ColdWarm:
    """Compare the first session after boot with the others.

    Args:
        ttfcs_ms: one a session, in the order in which they ran one after another; None for one without a chunk.
    """
    cold_ms = ttfcs_ms[0] if ttfcs_ms else None
    warm_ms = tuple(value for value in ttfcs_ms[1:] if value is not None)
    return ColdWarm(cold_ms, warm_ms, _above_median(cold_ms, warm_ms))


def recovery(
    *,
    dropped_ns: int,
    next_times: SessionTimes,
    next_arrivals: Sequence[ChunkArrival],
    undisturbed_ttfcs_ms: Sequence[float],
) -> Recovery:
    """What a dropped connection costs the session that comes after it on the same server.

    Args:
        dropped_ns: when the client of the first session closed its connection.
        next_times: the next session's moments.
        next_arrivals: its chunks.
        undisturbed_ttfcs_ms: TTFCs of warm sessions that nothing came before.
    """
    chunks = media_chunks(next_arrivals)
    first_ns = chunks[0].arrival_ns if chunks else None
    ttfc_ms = milliseconds_between(next_times.start_sent_ns, first_ns)
    return Recovery(
        next_ttfc_ms=ttfc_ms,
        undisturbed_ttfc_ms=tuple(undisturbed_ttfcs_ms),
        ghost_penalty_ms=_above_median(ttfc_ms, undisturbed_ttfcs_ms),
        drop_to_first_chunk_ms=milliseconds_between(dropped_ns, first_ns),
    )


def queue_waits_ms(sessions: Sequence[SessionTimes], *, slots: int = 1) -> list[float | None]:
    """How long each session waited for a slot, in the order given.

    The server says ``video.start`` at once and queues in silence, so the wait is worked out: sessions are served first
    come, first served, by ``slots`` at a time, and a slot is free again when its session has ended. Compare with the
    server's own word where it gives one. None for a session that never got a slot: it ended while it queued, or one
    before it never ended.

    Raises:
        ValueError: no slot.
    """
    if slots < 1:
        raise ValueError(f"slots is {slots}; a server serves at least 1 session at a time.")
    free_ns = [0] * slots
    waits: list[float | None] = [None] * len(sessions)
    for place in sorted(range(len(sessions)), key=lambda place: sessions[place].start_sent_ns):
        session = sessions[place]
        begins_ns = max(session.start_sent_ns, heapq.heappop(free_ns))
        ends_ns = _NEVER_NS if session.ended_ns is None else session.ended_ns
        got_a_slot = begins_ns < _NEVER_NS and begins_ns <= ends_ns
        heapq.heappush(free_ns, ends_ns if got_a_slot else begins_ns)
        if got_a_slot:
            waits[place] = milliseconds_between(session.start_sent_ns, begins_ns)
    return waits


def _above_median(value_ms: float | None, others_ms: Sequence[float]) -> float | None:
    if value_ms is None or not others_ms:
        return None
    return value_ms - percentile(others_ms, 0.5)

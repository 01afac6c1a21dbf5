"""Sessions made up for tests: chunks at given milliseconds, nine pictures and then twelve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vision_bench.bench.realtime.records import NS_PER_MS, ChunkArrival, SessionTimes
from vision_bench.wire.realtime.rollout import pixel_frames_in_chunk


def arrivals(
    *at_ms: float,
    trailer_ms: float | None = None,
    started: Mapping[int, Sequence[str]] | None = None,
    completed: Mapping[int, Sequence[str]] | None = None,
) -> list[ChunkArrival]:
    """A session's binary frames; ``started`` and ``completed`` say which chunk lists which event."""
    chunks = [
        ChunkArrival(
            transport_index=index,
            generation_index=index,
            is_trailer=False,
            arrival_ns=round(ms * NS_PER_MS),
            announced_bytes=1000,
            received_bytes=1000,
            announced_frames=pixel_frames_in_chunk(index),
            started_event_ids=tuple((started or {}).get(index, ())),
            completed_event_ids=tuple((completed or {}).get(index, ())),
        )
        for index, ms in enumerate(at_ms)
    ]
    if trailer_ms is not None:
        chunks.append(ChunkArrival(len(chunks), None, True, round(trailer_ms * NS_PER_MS), 100, 100, 0))
    return chunks


def times(start_ms: float = 0, **moments_ms: float) -> SessionTimes:
    """A session's moments, named without their unit: ``done=5`` is 5 ms."""
    moments = {f"{name}_ns": round(ms * NS_PER_MS) for name, ms in moments_ms.items()}
    return SessionTimes(start_sent_ns=round(start_ms * NS_PER_MS), **moments)

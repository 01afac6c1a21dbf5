"""What happened to an event that a viewer sent: answered when, seen when, finished when, or never.

An answer says that the event lies on the engine's queue. Whether it did anything is told by the chunks: the first one
that it changed lists its id in ``started_event_ids``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from vision_bench.bench.realtime.records import ChunkArrival, SentEvent, media_chunks, milliseconds_between

Known = TypeVar("Known")

PIPELINE_CHUNKS = 3
"""Chunks from the last one received to the first that an event can change (docs/realtime.md)."""


@dataclass(frozen=True, slots=True)
class InteractionTimes:
    """One event's latencies from the moment it was sent. Chunks are counted from the last one received before."""

    event_id: str
    ack_ms: float | None
    first_affected_ms: float | None
    first_affected_chunks: int | None
    completed_ms: float | None
    completed_chunks: int | None
    chunks_left: int
    """Media chunks that came after it was sent; fewer than the pipeline is deep, and it could not start any more."""


@dataclass(frozen=True, slots=True)
class InteractionSummary:
    """All events of one or more sessions."""

    sent: int
    acked: int
    refused: int
    unanswered: int
    started: int
    completed: int
    acked_never_started: int
    acked_never_started_rate: float | None
    """Of the acked ones; None without any."""
    acked_too_late: int
    """Those of ``acked_never_started`` with fewer chunks left than the pipeline is deep: the sender's doing."""
    ack_ms: tuple[float, ...]
    """Of those that have it, as are the three below; in no order that means anything."""
    first_affected_ms: tuple[float, ...]
    first_affected_chunks: tuple[int, ...]
    completed_ms: tuple[float, ...]


def interaction_times(event: SentEvent, arrivals: Sequence[ChunkArrival]) -> InteractionTimes:
    """What the chunks of the session say about ``event``.

    Args:
        event: one event of the session.
        arrivals: the session's chunks in order of arrival.
    """
    chunks = media_chunks(arrivals)
    seen = bisect_right([chunk.arrival_ns for chunk in chunks], event.sent_ns)
    started = _first_listing(event.event_id, [chunk.started_event_ids for chunk in chunks])
    completed = _first_listing(event.event_id, [chunk.completed_event_ids for chunk in chunks])

    def after(place: int | None) -> tuple[float | None, int | None]:
        if place is None:
            return None, None
        return milliseconds_between(event.sent_ns, chunks[place].arrival_ns), place - (seen - 1)

    first_affected_ms, first_affected_chunks = after(started)
    completed_ms, completed_chunks = after(completed)
    return InteractionTimes(
        event_id=event.event_id,
        ack_ms=milliseconds_between(event.sent_ns, event.acked_ns),
        first_affected_ms=first_affected_ms,
        first_affected_chunks=first_affected_chunks,
        completed_ms=completed_ms,
        completed_chunks=completed_chunks,
        chunks_left=len(chunks) - seen,
    )


def summarise_interactions(
    sessions: Sequence[tuple[Sequence[SentEvent], Sequence[ChunkArrival]]],
    *,
    pipeline_chunks: int = PIPELINE_CHUNKS,
) -> InteractionSummary:
    """Counts and latencies over the events of ``sessions``, each given as its events and its chunks."""
    events = [event for sent, _ in sessions for event in sent]
    times = [interaction_times(event, arrivals) for sent, arrivals in sessions for event in sent]
    acked = [one for event, one in zip(events, times, strict=True) if event.acked_ns is not None]
    refused = sum(event.acked_ns is None and event.refused_ns is not None for event in events)
    lost = [one for one in acked if one.first_affected_ms is None]
    return InteractionSummary(
        sent=len(events),
        acked=len(acked),
        refused=refused,
        unanswered=len(events) - len(acked) - refused,
        started=sum(one.first_affected_ms is not None for one in times),
        completed=sum(one.completed_ms is not None for one in times),
        acked_never_started=len(lost),
        acked_never_started_rate=len(lost) / len(acked) if acked else None,
        acked_too_late=sum(one.chunks_left < pipeline_chunks for one in lost),
        ack_ms=_known(one.ack_ms for one in times),
        first_affected_ms=_known(one.first_affected_ms for one in times),
        first_affected_chunks=_known(one.first_affected_chunks for one in times),
        completed_ms=_known(one.completed_ms for one in times),
    )


def _first_listing(event_id: str, listings: Sequence[Sequence[str]]) -> int | None:
    return next((place for place, ids in enumerate(listings) if event_id in ids), None)


def _known(values: Iterable[Known | None]) -> tuple[Known, ...]:
    return tuple(value for value in values if value is not None)

"""The client's own error: what it measured, less what the server says it did.

Every error but one is a difference of spans, so that the two sides need no common clock. A positive one means that the
client saw more time pass than the server did: the way to it, and its own lateness.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vision_bench.bench.realtime.interactions import interaction_times
from vision_bench.bench.realtime.metrics import ChunkRecord
from vision_bench.bench.realtime.records import (
    NS_PER_SECOND,
    ChunkArrival,
    SessionObservation,
    media_chunks,
    milliseconds_between,
)
from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth


@dataclass(frozen=True, slots=True)
class TimingErrors:
    """Measured minus true, in ms, one a thing that both sides know of."""

    ttfc_ms: tuple[float, ...]
    """Start written to first frame there, less start read to first frame sent."""
    interval_ms: tuple[float, ...]
    """Between neighbouring binary frames."""
    first_affected_ms: tuple[float, ...]
    """Event written to the first chunk that it changed, less event read to that chunk sent."""
    on_the_way_ms: tuple[float, ...] | None
    """Frame sent to frame there; None unless both sides have one clock."""
    server_lateness_ms: tuple[float, ...]
    """Sent less declared: the server's own error, no part of the client's."""
    frames_without_truth: int
    """Binary frames that the server says nothing of."""


def timing_errors(
    sessions: Sequence[SessionObservation],
    truths: Iterable[ChunkTruth | EventTruth],
    *,
    has_one_clock: bool,
) -> TimingErrors:
    """Compare what was measured of ``sessions`` with what the server declares, by request id and frame number."""
    chunks: dict[tuple[str, int], ChunkTruth] = {}
    events: dict[tuple[str, str], EventTruth] = {}
    for truth in truths:
        if isinstance(truth, ChunkTruth):
            chunks[truth.request_id, truth.transport_chunk_index] = truth
        else:
            events[truth.request_id, truth.event_id] = truth
    ttfc: list[float | None] = []
    intervals: list[float] = []
    affected: list[float | None] = []
    pairs: list[tuple[ChunkArrival, ChunkTruth]] = []
    without = 0
    for session in sessions:
        known = _matched(session, chunks)
        without += len(session.arrivals) - len(known)
        pairs += known
        ttfc += [_ttfc_error_ms(session, known)]
        intervals += _interval_errors_ms(known)
        affected += _affected_errors_ms(session, events)
    return TimingErrors(
        ttfc_ms=_known(ttfc),
        interval_ms=tuple(intervals),
        first_affected_ms=_known(affected),
        on_the_way_ms=_known(milliseconds_between(truth.sent_ns, arrival.arrival_ns) for arrival, truth in pairs)
        if has_one_clock
        else None,
        server_lateness_ms=_known(milliseconds_between(truth.due_ns, truth.sent_ns) for _, truth in pairs),
        frames_without_truth=without,
    )


def declared_records(session: SessionObservation, truths: Iterable[ChunkTruth | EventTruth]) -> list[ChunkRecord]:
    """The session's chunks as the server says it sent them, for the same player; up to the first that it is silent of.

    Times count from the server having read the start.
    """
    chunks = {
        truth.transport_chunk_index: truth
        for truth in truths
        if isinstance(truth, ChunkTruth) and truth.request_id == session.request_id
    }
    found: list[ChunkRecord] = []
    before_s = 0.0
    for index, arrival in enumerate(media_chunks(session.arrivals)):
        truth = chunks.get(arrival.transport_index)
        if truth is None:
            break
        sent_s = (truth.sent_ns - truth.start_read_ns) / NS_PER_SECOND
        found.append(ChunkRecord(index, sent_s, sent_s - before_s, arrival.received_bytes, arrival.announced_frames))
        before_s = sent_s
    return found


def queue_errors_ms(
    waits_ms: Iterable[tuple[SessionObservation, float | None]], truths: Iterable[ChunkTruth | EventTruth]
) -> list[float]:
    """Waits that were worked out less those that the server declares (slot less start read), where both are known."""
    declared_ms = {
        truth.request_id: milliseconds_between(truth.start_read_ns, truth.slot_ns)
        for truth in truths
        if isinstance(truth, ChunkTruth)
    }
    pairs = ((wait_ms, declared_ms.get(session.request_id or "")) for session, wait_ms in waits_ms)
    return [wait_ms - true_ms for wait_ms, true_ms in pairs if wait_ms is not None and true_ms is not None]


def _matched(
    session: SessionObservation, chunks: dict[tuple[str, int], ChunkTruth]
) -> list[tuple[ChunkArrival, ChunkTruth]]:
    if session.request_id is None:
        return []
    found = [(arrival, chunks.get((session.request_id, arrival.transport_index))) for arrival in session.arrivals]
    return [(arrival, truth) for arrival, truth in found if truth is not None]


def _ttfc_error_ms(session: SessionObservation, known: Sequence[tuple[ChunkArrival, ChunkTruth]]) -> float | None:
    if not known or known[0][0].transport_index != 0:
        return None
    arrival, truth = known[0]
    measured_ns = arrival.arrival_ns - session.times.start_sent_ns
    return milliseconds_between(truth.sent_ns - truth.start_read_ns, measured_ns)


def _interval_errors_ms(known: Sequence[tuple[ChunkArrival, ChunkTruth]]) -> list[float]:
    errors = []
    for (before, true_before), (after, true_after) in pairwise(known):
        if after.transport_index == before.transport_index + 1:
            measured_ns = after.arrival_ns - before.arrival_ns
            errors.append(milliseconds_between(true_after.sent_ns - true_before.sent_ns, measured_ns))
    return list(_known(errors))


def _affected_errors_ms(session: SessionObservation, events: dict[tuple[str, str], EventTruth]) -> list[float | None]:
    errors: list[float | None] = []
    for event in session.events:
        truth = events.get((session.request_id or "", event.event_id))
        measured_ms = interaction_times(event, session.arrivals).first_affected_ms
        true_ms = None if truth is None else milliseconds_between(truth.read_ns, truth.first_affected_ns)
        errors.append(None if measured_ms is None or true_ms is None else measured_ms - true_ms)
    return errors


def _known(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)

"""bench.realtime.interactions: answered, started, completed, or never."""

from __future__ import annotations

from tests.unit.bench.realtime.made import arrivals

from vision_bench.bench.realtime.interactions import interaction_times, summarise_interactions
from vision_bench.bench.realtime.records import NS_PER_MS, SentEvent


def event(name: str, sent_ms: float, acked_ms: float | None = None, refused_ms: float | None = None) -> SentEvent:
    """An event and its answer."""

    def ns(ms: float | None) -> int | None:
        return None if ms is None else round(ms * NS_PER_MS)

    return SentEvent(name, round(sent_ms * NS_PER_MS), ns(acked_ms), ns(refused_ms))


def test_an_event_after_chunk_1_that_starts_on_chunk_4_took_three_chunks() -> None:
    """Sent 10 ms after chunk 1 of a 1000 ms cadence: seen 2990 ms later, finished on the chunk after."""
    chunks = arrivals(1000, 2000, 3000, 4000, 5000, 6000, started={4: ["e"]}, completed={5: ["e"]})
    times = interaction_times(event("e", 2010, 2012), chunks)
    assert (times.ack_ms, times.first_affected_ms, times.first_affected_chunks) == (2.0, 2990.0, 3)
    assert (times.completed_ms, times.completed_chunks, times.chunks_left) == (3990.0, 4, 4)


def test_before_the_first_chunk_is_counted_from_no_chunk() -> None:
    """Nothing was received: chunk 2 is the third from there."""
    times = interaction_times(event("e", 10), arrivals(1000, 2000, 3000, started={2: ["e"]}))
    assert (times.first_affected_chunks, times.chunks_left) == (3, 3)


def test_an_event_on_one_chunk_starts_and_completes_on_it() -> None:
    """A hard switch."""
    chunks = arrivals(1000, 2000, started={1: ["e"]}, completed={1: ["e"]})
    times = interaction_times(event("e", 500, 501), chunks)
    assert times.first_affected_ms == times.completed_ms == 1500.0


def test_an_event_that_nobody_lists_has_no_latency() -> None:
    """None, and not 0 or the session's length."""
    times = interaction_times(event("e", 500, 501), arrivals(1000, 2000, started={1: ["other"]}))
    assert (times.first_affected_ms, times.first_affected_chunks, times.completed_ms) == (None, None, None)


def test_each_event_is_counted_once_under_what_became_of_it() -> None:
    """Five sent: one seen, one superseded, one too late, one refused, one without an answer."""
    chunks = arrivals(1000, 2000, 3000, 4000, 5000, started={3: ["seen"]}, completed={3: ["seen"]})
    sent = [
        event("seen", 1010, 1012),
        event("superseded", 1020, 1024),
        event("late", 4010, 4016),
        event("refused", 1030, refused_ms=1031),
        event("lost", 1040),
    ]
    summary = summarise_interactions([(sent, chunks)])
    assert (summary.sent, summary.acked, summary.refused, summary.unanswered) == (5, 3, 1, 1)
    assert (summary.started, summary.completed, summary.acked_never_started) == (1, 1, 2)
    assert summary.acked_too_late == 1
    assert summary.acked_never_started_rate == 2 / 3
    assert (summary.ack_ms, summary.first_affected_chunks) == ((2.0, 4.0, 6.0), (3,))


def test_refused_is_not_unanswered() -> None:
    """Two refused and one lost: an event that was acknowledged first and then named in an error stays acknowledged."""
    sent = [
        event("a", 10, refused_ms=11),
        event("b", 20, refused_ms=21),
        event("c", 30),
        event("d", 40, acked_ms=41, refused_ms=42),
    ]
    summary = summarise_interactions([(sent, arrivals(1000))])
    assert (summary.acked, summary.refused, summary.unanswered) == (1, 2, 1)


def test_too_late_is_fewer_chunks_left_than_the_pipeline_is_deep() -> None:
    """Three to come is just in time, two is not; a shallower pipeline judges otherwise."""
    chunks = arrivals(1000, 2000, 3000, 4000, 5000)
    sent = [event("in time", 2010, 2011), event("late", 3010, 3011)]
    assert summarise_interactions([(sent, chunks)]).acked_too_late == 1
    assert summarise_interactions([(sent, chunks)], pipeline_chunks=2).acked_too_late == 0


def test_the_same_id_in_two_sessions_is_two_events() -> None:
    """Ids are unique within a session only."""
    first = ([event("chunk-0", 1010, 1011)], arrivals(1000, 2000, 3000, 4000, started={3: ["chunk-0"]}))
    second = ([event("chunk-0", 1010, 1011)], arrivals(1000, 2000, 3000, 5000, started={3: ["chunk-0"]}))
    summary = summarise_interactions([first, second])
    assert (summary.started, summary.first_affected_ms) == (2, (2990, 3990))


def test_no_event_is_no_rate() -> None:
    """0 of 0 is nothing, not 0."""
    summary = summarise_interactions([([], arrivals(1000))])
    assert summary.acked_never_started_rate is None
    assert (summary.sent, summary.ack_ms) == (0, ())

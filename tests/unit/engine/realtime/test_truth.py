"""engine.realtime.truth: what is kept and what is told."""

from __future__ import annotations

import json

from vision_bench.engine.realtime.truth import TruthLog
from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth, read_truth


def test_chunks_and_events_are_told_as_the_benchmark_reads_them() -> None:
    """Frames numbered as sent; an event with the frame that began with it, another one that never began."""
    log = TruthLog(10)
    session = log.begin("r", 5)
    session.event_read("a", 15)
    session.event_read("b", 16)
    session.frame_sent(slot_ns=10, due_ns=20, sent_ns=21, started_event_ids=())
    session.frame_sent(slot_ns=10, due_ns=30, sent_ns=32, started_event_ids=("a",))
    assert [read_truth(json.loads(line)) for line in log.lines()] == [
        ChunkTruth("r", 0, 5, 10, 20, 21),
        ChunkTruth("r", 1, 5, 10, 30, 32),
        EventTruth("r", "a", 15, 32),
        EventTruth("r", "b", 16, None),
    ]


def test_the_oldest_sessions_are_forgotten() -> None:
    """At most so many are kept, and none after they were cleared."""
    log = TruthLog(2)
    for name in "abc":
        log.begin(name, 0).frame_sent(slot_ns=0, due_ns=0, sent_ns=0, started_event_ids=())
    assert [json.loads(line)["request_id"] for line in log.lines()] == ["b", "c"]
    log.clear()
    assert list(log.lines()) == []

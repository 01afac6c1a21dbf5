"""Whatever a server says, in whatever order: a session ends with one name, and its facts give the same record again."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from vision_bench.bench.realtime.journal import Journal, lost_sessions
from vision_bench.bench.realtime.reader import SessionReader
from vision_bench.bench.realtime.record import Fact, SessionRecord, observation
from vision_bench.bench.realtime.step import StepFacts, StepTally
from vision_bench.bench.realtime.summary import Basis

COUNTS = st.integers(0, 3)
IDS = st.sampled_from(["a", "b", "chunk-0"])
LISTS = st.lists(IDS, max_size=2)
METADATA = st.fixed_dictionaries(
    {
        "type": st.just("video.chunk_metadata"),
        "kind": st.sampled_from(["media", "trailer"]),
        "num_frames": st.integers(0, 12),
        "byte_length": COUNTS,
        "generation_chunk_index": st.none() | COUNTS,
        "transport_chunk_index": COUNTS,
        "started_event_ids": LISTS,
        "completed_event_ids": LISTS,
    }
)
SAID = st.one_of(
    METADATA,
    st.just({"type": "video.start", "request_id": "r"}),
    st.just({"type": "session.pong"}),
    st.just({"type": "other"}),
    st.builds(lambda event_id: {"type": "session.interaction.queued", "event_id": event_id}, IDS),
    st.builds(lambda n, stopped: {"type": "session.done", "chunks": n, "stopped": stopped}, COUNTS, st.booleans()),
    st.builds(
        lambda code, event_id: {"type": "error", "message": "m", "code": code, "event_id": event_id},
        st.sampled_from([None, "event_id_conflict", "interaction_failed"]),
        st.none() | IDS,
    ),
)
SENT = st.one_of(
    st.just({"type": "session.ping"}),
    st.just({"type": "session.stop"}),
    st.builds(lambda event_id: {"type": "session.interaction", "interaction": {"event_id": event_id}}, IDS),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), SAID),
        st.tuples(st.just("sending"), SENT),
        st.tuples(st.just("binary"), COUNTS),
        st.tuples(st.just("unreadable"), st.just("why")),
    ),
    max_size=30,
)
ENDS = st.sampled_from(
    [("closed", 1006), ("closed", 1009), ("closed", 1000), ("late", "chunk_timeout"), ("left", None)]
)


def facts_of(steps: list[tuple[Any, Any]], end: tuple[Any, Any]) -> list[Fact]:
    facts = [Fact(ns=1, name="connecting"), Fact(ns=2, name="open"), Fact(ns=3, name="started")]
    for name, value in [*steps, end]:
        text = json.dumps(value) if isinstance(value, dict) else value if isinstance(value, str) else None
        facts.append(Fact(ns=len(facts) + 1, name=name, text=text, size=value if isinstance(value, int) else None))
    return facts


@given(STEPS, ENDS, st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_every_session_ends_with_one_name_and_can_be_read_again(
    steps: list[tuple[Any, Any]], end: tuple[Any, Any], num_chunks: int
) -> None:
    """No order of messages is an error of ours; the record survives its line, the facts give it again, and numbers
    can be made of it."""
    record = SessionRecord(step=1, index=0, ordinal=0, due_ns=0, dsp_ns=1, num_chunks=num_chunks)
    reader = SessionReader(record)
    facts = facts_of(steps, end)
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "facts.jsonl")
        for fact in facts:
            journal.add(record, fact)
            reader.take(fact)
        journal.close()
        (again,) = lost_sessions(Path(folder) / "facts.jsonl", known=())
    record.stop_ns = facts[-1].ns
    assert record.outcome is not None
    assert again == record
    assert msgspec.json.decode(msgspec.json.encode(record), type=SessionRecord) == record
    tally = StepTally(StepFacts(1, 10**9, True, None, 1, 1.0, 1, 0.0, 0.0), Basis(fps=16.0, width=64, height=48))
    tally.add(record)
    json.dumps(tally.summary(), allow_nan=False)
    assert len(observation(record).records) <= len(record.chunks)

"""One session's facts into its record: what each oddity of the protocol is called, and how a session ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.bench.realtime.reader import SessionReader
from vision_bench.bench.realtime.record import Fact, SessionRecord, observation
from vision_bench.wire.realtime.events import (
    ChunkMetadata,
    ErrorEvent,
    InteractionQueued,
    Pong,
    SessionDone,
    VideoStart,
)

MS = 1_000_000


class Told:
    """A session told fact by fact, a millisecond apart."""

    def __init__(self, num_chunks: int = 3) -> None:
        self.record = SessionRecord(step=1, index=0, ordinal=0, due_ns=0, num_chunks=num_chunks)
        self.reader = SessionReader(self.record)
        self.now_ns = 0
        self.transport = 0

    def fact(self, name: Any, text: str | None = None, size: int | None = None) -> Told:
        self.now_ns += MS
        self.reader.take(Fact(ns=self.now_ns, name=name, text=text, size=size))
        return self

    def message(self, event: Any) -> Told:
        return self.fact("text", json.dumps(event if isinstance(event, dict) else event.to_message()))

    def begin(self) -> Told:
        return self.fact("connecting").fact("open").fact("started").message(VideoStart("r1", {}))

    def chunk(self, index: int | None, *, frames: int = 12, size: int = 100, **lists: tuple[str, ...]) -> Told:
        self.message(ChunkMetadata("r1", "media", frames, 100, index, self.transport, **lists))
        self.transport += 1
        return self.fact("binary", size=size)

    def trailer(self) -> Told:
        self.message(ChunkMetadata("r1", "trailer", 0, 50, None, self.transport))
        self.transport += 1
        return self.fact("binary", size=50)

    def send(self, event_id: str) -> Told:
        message = {"type": "session.interaction", "interaction": {"event_id": event_id, "event": {"prompt": "x"}}}
        return self.fact("sending", json.dumps(message))

    def ping(self) -> Told:
        return self.fact("sending", '{"type":"session.ping"}')

    def stop(self) -> Told:
        return self.fact("sending", '{"type":"session.stop"}')

    def done(self, *, chunks: int | None = None, stopped: bool = False) -> Told:
        return self.message(SessionDone("r1", self.transport if chunks is None else chunks, stopped))

    def closed(self, code: int = 1006) -> SessionRecord:
        self.fact("closed", size=code)
        return self.record


def whole() -> Told:
    return Told().begin().chunk(0, frames=9).chunk(1).chunk(2).trailer()


def test_a_whole_session_is_ok_although_no_close_frame_comes() -> None:
    """Abnormal closure after done is normal: it is counted by name and ends nothing."""
    record = whole().done().closed()
    assert (record.outcome, record.oddities) == ("ok", {"no_close_frame": 1})
    assert (record.request_id, record.done_chunks, record.close_code) == ("r1", 4, 1006)
    assert [chunk.generation_index for chunk in record.chunks] == [0, 1, 2, None]


def test_what_a_viewer_waits_for_is_stamped() -> None:
    """Zero is the start having been written; the first byte is the first chunk's announcement, the chunk its bytes."""
    record = whole().done().closed()
    assert (record.start_sent_ns, record.video_start_ns, record.first_byte_ns) == (3 * MS, 4 * MS, 5 * MS)
    seen = observation(record)
    assert [chunk.arrival_s for chunk in seen.records] == [0.003, 0.005, 0.007]
    assert seen.times.ended_ns == record.done_ns


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (Told().fact("started").message(ErrorEvent("Invalid session.start")), "start_refused"),
        (Told().begin().message(ErrorEvent("400: width")), "late_error"),
        (Told().begin().chunk(0).message(ErrorEvent("engine died")), "session_error"),
        (Told().begin().chunk(0), "connection_lost"),
        (Told(), "connection_lost"),
    ],
)
def test_a_last_error_is_named_by_when_it_came(told: Told, outcome: str) -> None:
    """Before the start, before the first chunk, in mid-stream; without an error the connection was lost."""
    record = told.closed()
    assert record.outcome == outcome
    assert outcome == "connection_lost" or record.errors[0] in (record.detail or "")


def test_an_error_followed_by_done_is_a_stall_of_the_server() -> None:
    """The stall path sends an error and then done, stopped, that nobody asked for."""
    told = Told().begin().chunk(0).message(ErrorEvent("Stall timeout: no generation progress")).done(stopped=True)
    record = told.closed()
    assert (record.outcome, record.detail) == ("server_stall", "Stall timeout: no generation progress")


def test_an_error_answers_the_oldest_interaction_that_waits() -> None:
    """Replies are ordered: with a ping before it, an interaction's reply is not the first; after the pong it is."""
    told = Told().begin().chunk(0).ping().send("a").send("b").message(Pong()).message(ErrorEvent("control refused"))
    told.message(InteractionQueued("r1", "b")).chunk(1).chunk(2, started_event_ids=("b",)).trailer().done()
    record = told.closed()
    assert record.outcome == "ok"
    assert [(event.event_id, event.refused_ns is not None, event.acked_ns is not None) for event in record.events] == [
        ("a", True, False),
        ("b", False, True),
    ]
    assert (record.pings, record.pongs, record.errors) == (1, 1, ["control refused"])


def test_an_error_while_only_a_ping_waits_is_no_reply() -> None:
    """A ping is never refused: the session is in doubt until something follows."""
    told = Told().begin().chunk(0).ping().message(ErrorEvent("engine died"))
    assert told.reader.in_doubt_since_ns is not None
    assert told.closed().outcome == "session_error"


def test_a_session_that_goes_on_after_an_error_was_not_ended_by_it() -> None:
    """An error that answers nothing is survived and counted."""
    told = Told().begin().chunk(0).message(ErrorEvent("?")).chunk(1).chunk(2).trailer().done()
    record = told.closed()
    assert (record.outcome, record.oddities["error_that_answers_nothing"]) == ("ok", 1)


def test_a_refusal_that_nothing_follows_was_the_end_instead() -> None:
    """What looked like a reply was the session's death: the event is unanswered, and the death is named."""
    record = Told().begin().chunk(0).send("a").message(ErrorEvent("unsupported modality")).closed()
    assert record.outcome == "session_error"
    assert record.events[0].refused_ns is None


def test_death_after_an_acknowledgement_names_the_event() -> None:
    """Queued, then an error without code and id: the detail says which events were acknowledged and never started."""
    told = Told().begin().chunk(0).send("a").message(InteractionQueued("r1", "a")).message(ErrorEvent("bad pose"))
    record = told.closed()
    assert record.outcome == "session_error"
    assert record.detail == "bad pose (after 1 of 3 chunks; acknowledged before and never started: a)"


def test_a_conflict_names_its_event_and_frees_nobody_elses_reply() -> None:
    """An error with a code is the reply to the event that it names, wherever that stands in the queue."""
    told = Told().begin().chunk(0).send("a").send("a").message(InteractionQueued("r1", "a"))
    told.message(ErrorEvent("event_id_conflict", "event_id_conflict", "r1", "a")).chunk(1).chunk(2).trailer().done()
    record = told.closed()
    assert record.outcome == "ok"
    assert [event.acked_ns is not None for event in record.events] == [True, False]
    assert record.events[1].refused_ns is not None


def test_a_rollout_of_one_chunk_has_no_index() -> None:
    """A null index is the next one, and is counted by name."""
    record = Told(1).begin().chunk(None, frames=9).trailer().done().closed()
    assert (record.outcome, record.oddities["null_index"]) == ("ok", 1)
    assert observation(record).records[0].index == 0


def test_chunks_without_bytes_are_not_announced_and_not_missing() -> None:
    """An encoder that holds back: the first message is of chunk 2; the rollout is whole at its last index."""
    record = Told().begin().chunk(2, frames=12).trailer().done().closed()
    assert (record.outcome, record.oddities["chunks_not_announced"]) == ("ok", 2)


def test_a_rollout_that_ends_early_is_short() -> None:
    """Done, not stopped, before the last chunk."""
    record = Told().begin().chunk(0).chunk(1).trailer().done().closed()
    assert (record.outcome, record.detail) == ("short_rollout", "2 of 3 chunks, then done")


def test_done_that_was_asked_for_is_ok() -> None:
    """After session.stop there is no trailer, and that is as it should be."""
    record = Told().begin().chunk(0).stop().done(stopped=True).closed()
    assert (record.outcome, record.oddities) == ("ok", {"no_close_frame": 1})


def test_done_that_nobody_asked_for_is_named() -> None:
    """Stopped, and it was not us."""
    assert Told().begin().chunk(0).done(stopped=True).closed().outcome == "stopped_by_server"


def test_a_close_for_size_is_named() -> None:
    """Close code 1009, whoever's limit it was."""
    assert Told().fact("started").closed(1009).outcome == "message_too_big"


def test_a_deadline_that_passes_ends_the_session_by_its_name() -> None:
    """Unless an error was the last word: then that is what ended it."""
    told = Told().begin().fact("late", "first_chunk_timeout")
    assert (told.record.outcome, told.record.detail) == ("first_chunk_timeout", "after 0 of 3 chunks")
    told = Told().begin().message(ErrorEvent("503: no image")).fact("late", "first_chunk_timeout")
    assert told.record.outcome == "late_error"


def test_a_connection_that_we_drop_ended_as_it_should() -> None:
    """Leaving is what the plan said."""
    record = Told().begin().chunk(0).fact("left").closed()
    assert (record.outcome, record.left_ns is not None) == ("ok", True)


def test_what_is_odd_is_counted_by_name() -> None:
    """Lengths, numbers, order, unknown and unreadable messages, another count in done, no trailer."""
    told = Told().begin().message(VideoStart("r2", {})).chunk(0, size=99)
    told.transport += 1
    told.chunk(1).chunk(1).fact("binary", size=5)
    told.message(ChunkMetadata("r1", "media", 12, 100, 2, told.transport))
    told.message({"type": "session.mood"}).fact("unreadable", "not JSON").done(chunks=9)
    record = told.closed()
    assert record.oddities == {
        "repeated_video_start": 1,
        "other_length_than_announced": 1,
        "transport_gap": 1,
        "repeated_index": 1,
        "sent_and_not_announced": 1,
        "unknown_message": 1,
        "unreadable_message": 1,
        "announced_and_not_sent": 1,
        "done_counts_other_chunks": 1,
        "no_trailer": 1,
        "no_close_frame": 1,
    }
    assert record.request_id == "r1"
    assert record.outcome == "short_rollout"

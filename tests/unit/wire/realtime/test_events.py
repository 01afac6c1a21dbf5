"""wire.realtime.events: what the server says reads as it was said, and what is no such thing is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.wire.realtime.events import (
    ChunkMetadata,
    ErrorEvent,
    Event,
    InteractionQueued,
    Pong,
    SessionDone,
    UnknownEvent,
    VideoStart,
    read_event,
)

METADATA: dict[str, Any] = {
    "type": "video.chunk_metadata",
    "request_id": "video_stream-1",
    "kind": "media",
    "num_frames": 9,
    "byte_length": 506287,
    "generation_chunk_index": 0,
    "transport_chunk_index": 0,
    "started_event_ids": ["a"],
    "active_event_ids": ["a", "b"],
    "completed_event_ids": [],
}


@pytest.mark.parametrize(
    "event",
    [
        VideoStart("video_stream-1", {"prompt": "p"}),
        ChunkMetadata("video_stream-1", "media", 9, 506287, 0, 0, ("a",), ("a", "b"), ()),
        ChunkMetadata("video_stream-1", "trailer", 0, 812, None, 3),
        InteractionQueued("video_stream-1", "fwd-1"),
        Pong(),
        SessionDone("video_stream-1", 4, stopped=False),
        ErrorEvent("Invalid JSON message"),
        ErrorEvent("event_id_conflict", "event_id_conflict", "video_stream-1", "a"),
    ],
)
def test_what_is_said_reads_as_it_was_said(event: Event) -> None:
    """To JSON and back, every event."""
    assert not isinstance(event, UnknownEvent)
    assert read_event(json.dumps(event.to_message())) == event


def test_the_metadata_has_the_servers_keys() -> None:
    """No more and no fewer."""
    assert ChunkMetadata("video_stream-1", "media", 9, 506287, 0, 0, ("a",), ("a", "b"), ()).to_message() == METADATA


def test_an_error_says_only_what_it_knows() -> None:
    """No nulls: a fatal one is a type and a text."""
    assert ErrorEvent("boom").to_message() == {"type": "error", "message": "boom"}


def test_a_null_place_in_the_rollout_is_read() -> None:
    """A rollout of one chunk has it; the published client stops here."""
    event = read_event(json.dumps({**METADATA, "generation_chunk_index": None}))
    assert isinstance(event, ChunkMetadata)
    assert event.generation_chunk_index is None


def test_what_a_client_can_do_without_may_be_missing() -> None:
    """Ids of events and of the request, and the words of an error."""
    short = {name: METADATA[name] for name in ("type", "kind", "num_frames", "byte_length", "transport_chunk_index")}
    assert read_event(json.dumps(short)) == ChunkMetadata(None, "media", 9, 506287, None, 0)
    assert read_event('{"type": "error"}') == ErrorEvent("")
    assert read_event('{"type": "error", "message": "x", "code": 503}') == ErrorEvent("x", "503")


def test_a_new_type_is_handed_on() -> None:
    """Later servers say more."""
    event = read_event('{"type": "session.playback", "position": 1}')
    assert event == UnknownEvent("session.playback", {"type": "session.playback", "position": 1})


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("{x", "Expecting"),
        ("[" * 5000, "nested"),
        ("[1]", "list, not an object"),
        ("{}", "no 'type'"),
        ('{"type": 5}', "'type' is int"),
        ('{"type": "video.start", "config": {}}', "'request_id' is missing"),
        ('{"type": "video.start", "request_id": "r", "config": 5}', "'config' is int"),
        ('{"type": "session.done"}', "'chunks' is None"),
        ('{"type": "session.interaction.queued"}', "'event_id' is missing"),
        *(
            (json.dumps({**METADATA, name: value}), name)
            for name, value in [
                ("kind", "audio"),
                ("kind", None),
                ("num_frames", -1),
                ("num_frames", 2**53),
                ("num_frames", True),
                ("byte_length", "9"),
                ("byte_length", None),
                ("transport_chunk_index", 1.5),
                ("generation_chunk_index", "0"),
                ("started_event_ids", "a"),
                ("active_event_ids", [5]),
                ("completed_event_ids", {}),
            ]
        ),
    ],
)
def test_what_is_no_event_is_refused_by_name(message: str, says: str) -> None:
    """A broken server makes a line in a report and no crash of another kind."""
    with pytest.raises(ValueError, match=says):
        read_event(message)

"""wire.realtime.truth: lines read as they were written, and what is no line is named."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth, read_truth

CHUNK = ChunkTruth("video_stream-1", 3, 100, 200, 5000, 5100)


@pytest.mark.parametrize(
    "truth", [CHUNK, EventTruth("video_stream-1", "a", 300, 5100), EventTruth("video_stream-1", "a", 300, None)]
)
def test_what_is_written_reads_the_same(truth: ChunkTruth | EventTruth) -> None:
    """Both kinds, and an event that changed nothing."""
    assert read_truth(truth.to_message()) == truth


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"type": "frame"}, "'type' is 'frame'"),
        ({"type": None}, "'type' is None"),
        ({"request_id": None}, "'request_id' is missing"),
        ({"request_id": 5}, "'request_id' is int"),
        ({"sent_ns": 1.5}, "'sent_ns' is 1.5"),
        ({"due_ns": None}, "'due_ns' is None"),
        ({"slot_ns": True}, "'slot_ns' is True"),
        ({"type": "event", "event_id": None}, "'event_id' is missing"),
        ({"type": "event", "event_id": "a", "read_ns": "5"}, "'read_ns' is '5'"),
        ({"type": "event", "event_id": "a", "read_ns": 5, "first_affected_ns": "x"}, "'first_affected_ns' is 'x'"),
    ],
)
def test_what_is_no_truth_is_named(changes: dict[str, Any], says: str) -> None:
    """ValueError with the field."""
    with pytest.raises(ValueError, match=says):
        read_truth({**CHUNK.to_message(), **changes})

"""wire.chat_stream.StreamReader event by event: what is counted and timed."""

from __future__ import annotations

import json
from typing import Any

from vision_bench.wire.chat_stream import StreamReader


def event(delta: dict[str, Any], **more: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]} | more).encode() + b"\n\n"


def test_events_stay_apart_in_one_network_chunk() -> None:
    """Three events, three entries: a role alone carries no output, and each has the usage that it told itself."""
    data = (
        event({"role": "assistant", "content": ""}, usage={"completion_tokens": 0})
        + event({"content": "one two"}, usage={"completion_tokens": 2})
        + event({"reasoning": "hm", "content": "three"})
    )
    found = StreamReader().feed_events(data)
    assert [[(delta.kind, delta.text) for delta in one.deltas] for one in found] == [
        [],
        [("text", "one two")],
        [("reasoning", "hm"), ("text", "three")],
    ]
    assert [one.usage for one in found] == [{"completion_tokens": 0}, {"completion_tokens": 2}, None]


def test_the_end_and_an_error_are_events_too() -> None:
    """They carry no output, and nothing after them is given."""
    reader = StreamReader()
    assert len(reader.feed_events(b"data: [DONE]\n\n" + event({"content": "x"}))) == 1
    assert reader.feed_events(event({"content": "x"})) == []

"""bench.chat.live: what a live workload asks for, and what it refuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from vision_bench.bench.chat.bodies import STREAM, Bodies, encode_json, make_template
from vision_bench.bench.chat.live import Live
from vision_bench.errors import InvalidRequest
from vision_bench.live.references import parse_reference

FRAME = Live(film="f.mp4", look="frame", publish_fps=10)
SEGMENT = Live(film="f.mp4", look="segment", seconds=5, max_fps=2)


@pytest.mark.parametrize(
    ("live", "kind", "query", "history_seconds"),
    [
        (FRAME, "image_url", "frame_index=-1&wait_ms=10000", 0),
        (msgspec.structs.replace(FRAME, offset_ms=-2000), "image_url", "offset_ms=-2000&wait_ms=10000", 2),
        (SEGMENT, "video_url", "start_offset_ms=-5000&max_fps=2", 5),
        (
            msgspec.structs.replace(SEGMENT, offset_ms=-1000, max_fps=None),
            "video_url",
            "start_offset_ms=-6000&end_offset_ms=-1000",
            6,
        ),
    ],
)
def test_what_is_looked_at_is_a_reference(live: Live, kind: Any, query: str, history_seconds: float) -> None:
    """The gateway's own parser takes it, once the stream's id is in its slot; a film plays as long as it looks back."""
    part = live.part()
    url = part[kind]["url"]
    assert url == f"stream://streams/{STREAM}?{query}"
    parse_reference(url.replace(STREAM, "s-1"), kind)
    assert live.history_seconds == history_seconds


@pytest.mark.parametrize(
    "values",
    [
        {"look": "frame", "seconds": 5},
        {"look": "segment"},
        {"look": "frame", "max_fps": 2},
        {"look": "segment", "seconds": 5, "max_fps": 0},
        {"look": "segment", "seconds": 5, "max_fps": 1001},
        {"look": "segment", "seconds": 0},
        {"look": "frame", "publish_fps": 0},
        {"look": "frame", "offset_ms": 5},
    ],
)
def test_a_contradiction_names_the_key(values: dict[str, Any]) -> None:
    """Each is an error that names what is wrong."""
    with pytest.raises((InvalidRequest, ValueError), match="live"):
        Live(film="f.mp4", **values)


def test_the_streams_id_is_in_the_body_and_in_no_fingerprint() -> None:
    """Two runs have two streams and one template; two questions of one run are no repeats of each other."""
    template = make_template("live", {"content": [FRAME.part()]})
    bodies = Bodies([template])
    bodies.stream = "s-1"
    one, other = bodies.item(0), bodies.item(1)
    assert b"".join(one.buffers) == encode_json({"content": [FRAME.part()]}).replace(STREAM.encode(), b"s-1")
    assert one.sha256 != other.sha256
    again = Bodies([template])
    again.stream = "s-2"
    assert again.item(0).sha256 == one.sha256

"""Where the public v1beta pages contradict each other: one row a topic, with what is done here (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.live.clock import Clock
from tests.unit.live.rings import ring_of

from vision_bench.live.failures import StreamFailure
from vision_bench.live.references import parse_reference
from vision_bench.live.registry import Limits, Registry
from vision_bench.live.selection import select
from vision_bench.live.shapes import keepalive_body, status_body


def asked(query: str) -> list[int] | tuple[int, str]:
    """What the query names of frames 0 to 19, every 100 ms, of which 10 to 19 are held; or status and code."""
    ring = ring_of((number * 100 for number in range(20)), held=10)
    try:
        part = "video_url" if "start_" in query else "image_url"
        reference = parse_reference(f"ovs://streams/a?{query}", part)
        return [frame.index for frame in select(ring, reference)]
    except StreamFailure as problem:
        return problem.status, problem.code


TEN_TO_NINETEEN = list(range(10, 20))

REFERENCES: list[tuple[str, str, list[int] | tuple[int, str]]] = [
    ("old exact index: 410 for a picture", "frame_index=9", (410, "frame_evicted")),
    ("old exact index: clamp asks for the oldest", "frame_index=9&clamp=true", [10]),
    ("old exact index: a segment is intersected", "start_frame_index=0&max_fps=100", TEN_TO_NINETEEN),
    ("future index: 409, not 422", "frame_index=20", (409, "frame_not_yet_produced")),
    ("bad query: 400, not 422", "frame_index=1&frame_index=2", (400, "query_param_invalid")),
    ("bad query: two anchors", "frame_index=1&timestamp_ms=2", (400, "query_param_invalid")),
    ("bad query: two starts", "start_frame_index=1&start_offset_ms=2", (400, "query_param_invalid")),
    ("sign of offsets: 0 and above from the oldest held", "offset_ms=200", [12]),
    ("sign of offsets: negative from the newest", "offset_ms=-200", [17]),
    ("sign of offsets: a start of 0 is the oldest", "start_offset_ms=0&end_offset_ms=300&max_fps=100", [10, 11, 12]),
    ("sign of offsets: the documented example", "start_offset_ms=-300&end_offset_ms=0&max_fps=100", [16, 17, 18, 19]),
    ("sign of offsets: after an index that counts back", "start_frame_index=-2&end_offset_ms=0&max_fps=100", [18, 19]),
    ("sign of offsets: otherwise 0 is the oldest", "start_frame_index=12&end_offset_ms=0", (400, "segment_invalid")),
    ("frame_index origin: lifetime", "frame_index=10", [10]),
    ("frame_index origin: not the place in the buffer", "frame_index=0", (410, "frame_evicted")),
]  # fmt: skip


@pytest.mark.parametrize(("topic", "query", "expected"), REFERENCES, ids=[row[0] for row in REFERENCES])
def test_a_reference(topic: str, query: str, expected: list[int] | tuple[int, str]) -> None:
    """Each topic about references has one answer."""
    assert asked(query) == expected


def lease(limits: Limits) -> Any:
    stream = Registry(limits).create("ann")
    return stream.ttl_seconds, stream.expires_ns - stream.created_ns


def time_before_video() -> Any:
    stream = Registry(Limits()).create("ann")
    return (
        status_body(stream, now_ns=stream.created_ns)["stream_time_ms"],
        keepalive_body(stream, None, now_ns=stream.created_ns)["stream_time_ms"],
    )


def foreign_stream() -> Any:
    registry = Registry(Limits())
    stream = registry.create("ann")
    with pytest.raises(StreamFailure) as caught:
        registry.active("bob", stream.id)
    return caught.value.status, caught.value.code


def end_reasons() -> Any:
    clock = Clock()
    registry = Registry(Limits(), clock=clock)
    reaped, deleted, expired = (registry.create("ann") for _ in range(3))
    registry.reap(reaped.id)
    registry.delete("ann", deleted.id)
    clock.pass_seconds(300)
    registry.sweep()
    return [status_body(stream, now_ns=clock())["end_reason"] for stream in (reaped, deleted, expired)]


def too_many() -> Any:
    registry = Registry(Limits(streams_per_owner=1))
    registry.create("ann")
    with pytest.raises(StreamFailure) as caught:
        registry.create("ann")
    return caught.value.status


STREAMS: list[tuple[str, Callable[[], Any], Any]] = [
    ("lease: 300 s by default", lambda: lease(Limits()), (300, 300 * 10**9)),
    ("lease: configurable", lambda: lease(Limits(ttl_seconds=45)), (45, 45 * 10**9)),
    ("stream_time_ms before video: 0, not null", time_before_video, (0, 0)),
    ("foreign stream: 404, not 403", foreign_stream, (404, "stream_not_found")),
    ("end_reason: reaped stays inside", end_reasons, ["expired", "deleted", "expired"]),
    ("429: emitted", too_many, 429),
]


@pytest.mark.parametrize(("topic", "told", "expected"), STREAMS, ids=[row[0] for row in STREAMS])
def test_a_stream(topic: str, told: Callable[[], Any], expected: Any) -> None:
    """Each topic about streams has one answer."""
    assert told() == expected

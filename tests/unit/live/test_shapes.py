"""Streams as JSON."""

from __future__ import annotations

from tests.unit.live.clock import Clock

from vision_bench.live.registry import Limits, Registry, Stream
from vision_bench.live.shapes import created_body, deleted_body, keepalive_body, status_body

CREATED_AT_MS = 1_777_529_631_184
PUBLISH = {"type": "whip", "url": "http://127.0.0.1:8001/v1beta/streams/a/whip", "token": "t"}


def a_stream(clock: Clock, source: str | None = None) -> tuple[Registry, Stream]:
    registry = Registry(Limits(), clock=clock, wall_clock=clock.wall_ns, new_id=lambda: "a")
    return registry, registry.create("ann", source=source)  # type: ignore[arg-type]


def test_a_new_stream() -> None:
    """Id, state, where to publish, and when the lease ends."""
    _, stream = a_stream(Clock())
    assert created_body(stream, PUBLISH) == {
        "id": "a",
        "state": "active",
        "publish": PUBLISH,
        "expires_at_ms": CREATED_AT_MS + 300_000,
        "ttl_seconds": 300,
    }


def test_a_pulled_stream_names_its_kind_and_not_its_url() -> None:
    """There is nowhere to publish, and the source's URL, which may hold a password, is not even kept."""
    _, stream = a_stream(Clock(), "rtsp")
    body = created_body(stream, None)
    assert (body["source"], body["publish"]) == ({"type": "rtsp"}, None)
    stream.last_pull_ns = 5_000_000_000
    status = status_body(stream, now_ns=6_000_000_000)
    assert (status["source"], status["last_pull"]) == ({"type": "rtsp"}, CREATED_AT_MS + 5_000)


def test_a_stream_without_a_frame() -> None:
    """The stream's time is 0 and the counts are 0; every time and index of a frame is null."""
    _, stream = a_stream(Clock())
    assert status_body(stream, now_ns=1_000_000) == {
        "id": "a",
        "state": "active",
        "stream_time_ms": 0,
        "first_frame_at_ms": None,
        "last_frame_at_ms": None,
        "first_available_frame_at_ms": None,
        "last_frame_index": None,
        "first_available_frame_index": None,
        "recent_fps": None,
        "retained_frame_count": 0,
        "evicted_frame_count": 0,
        "last_pull": None,
        "created_at_ms": CREATED_AT_MS,
        "expires_at_ms": CREATED_AT_MS + 300_000,
        "ttl_seconds": 300,
        "ended_at_ms": None,
        "end_reason": None,
        "audio": False,
        "vision_bench": {"refused_frames": {}, "held_bytes": 0},
    }


def test_three_axes_agree() -> None:
    """The wall time of a frame is that of the first frame plus its time on the stream's clock."""
    clock = Clock()
    _, stream = a_stream(clock)
    clock.pass_seconds(2)
    for number in range(700):
        at_ns = clock() + 5_000_000  # a picture's time need not be the moment in which it came
        stream.ring.append(b"jpg", width=1, height=1, at_ns=at_ns, received_ns=clock())
        clock.pass_seconds(2 if number % 2 else 0.04)
    body = status_body(stream, now_ns=clock())
    assert body["first_frame_at_ms"] == CREATED_AT_MS + 2_005
    assert body["last_frame_at_ms"] - body["first_frame_at_ms"] == body["stream_time_ms"] == 349 * 2_040 + 40
    oldest = stream.ring[body["first_available_frame_index"]]
    assert body["first_available_frame_at_ms"] == body["first_frame_at_ms"] + oldest.stream_ms
    assert oldest.index > 0
    assert body["retained_frame_count"] + body["evicted_frame_count"] == body["last_frame_index"] + 1 == 700


def test_a_keepalive_tells_the_new_lease_and_the_stream_s_time() -> None:
    """0 before the first frame; then the newest frame's."""
    clock = Clock()
    registry, stream = a_stream(clock)
    clock.pass_seconds(100)
    registry.keep_alive("ann", "a")
    assert keepalive_body(stream, PUBLISH, now_ns=clock()) == {
        "id": "a",
        "expires_at_ms": CREATED_AT_MS + 400_000,
        "ttl_seconds": 300,
        "stream_time_ms": 0,
        "publish": PUBLISH,
    }
    for at_ns in (10**9, 2 * 10**9):
        stream.ring.append(b"jpg", width=1, height=1, at_ns=at_ns, received_ns=clock())
    assert keepalive_body(stream, None, now_ns=clock())["stream_time_ms"] == 1_000


def test_an_ended_stream_keeps_its_last_numbers() -> None:
    """State, moment and reason of the end; what the server reaped is told as expired."""
    clock = Clock()
    registry, stream = a_stream(clock)
    stream.ring.append(b"jpg", width=1, height=1, at_ns=0, received_ns=0)
    clock.pass_seconds(4)
    registry.reap("a")
    body = status_body(stream, now_ns=clock() + 10**9)
    assert (body["state"], body["ended_at_ms"], body["end_reason"]) == ("ended", CREATED_AT_MS + 4_000, "expired")
    assert (body["retained_frame_count"], body["last_frame_index"]) == (1, 0)
    assert deleted_body(stream) == {"id": "a", "deleted": True}

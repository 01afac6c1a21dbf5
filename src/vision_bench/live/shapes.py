"""Streams as the JSON objects of ``/streams``. Times are Unix milliseconds; what is not known is null, never 0."""

from __future__ import annotations

from typing import Any

from vision_bench.live.registry import Stream

Json = dict[str, Any]


def created_body(stream: Stream, publish: Json | None) -> Json:
    """The answer to a creation. ``publish`` says where to send the video; None for one that the server pulls."""
    source = {"source": {"type": stream.source}} if stream.source else {}
    return {
        "id": stream.id,
        "state": _state(stream),
        **source,
        "publish": publish,
        "expires_at_ms": stream.wall_ms(stream.expires_ns),
        "ttl_seconds": stream.ttl_seconds,
    }


def keepalive_body(stream: Stream, publish: Json | None, *, now_ns: int) -> Json:
    """The answer to a keepalive, with a fresh ``publish``."""
    return {
        "id": stream.id,
        "expires_at_ms": stream.wall_ms(stream.expires_ns),
        "ttl_seconds": stream.ttl_seconds,
        "stream_time_ms": stream.state(now_ns).last_ms or 0,
        "publish": publish,
    }


def deleted_body(stream: Stream) -> Json:
    """The answer to a deletion, the first and every later one."""
    return {"id": stream.id, "deleted": True}


def status_body(stream: Stream, *, now_ns: int) -> Json:
    """All that a caller may know of a stream: its lease, its frames on three axes, and how it ended."""
    ring = stream.state(now_ns)
    source = {"source": {"type": stream.source}} if stream.source else {}
    return {
        "id": stream.id,
        "state": _state(stream),
        **source,
        "stream_time_ms": ring.last_ms or 0,
        "first_frame_at_ms": _frame_at_ms(stream, 0 if ring.last_ms is not None else None),
        "last_frame_at_ms": _frame_at_ms(stream, ring.last_ms),
        "first_available_frame_at_ms": _frame_at_ms(stream, ring.first_ms),
        "last_frame_index": ring.last_index,
        "first_available_frame_index": ring.first_index,
        "recent_fps": ring.recent_fps,
        "retained_frame_count": ring.retained_count,
        "evicted_frame_count": ring.evicted_count,
        "last_pull": _wall_ms(stream, stream.last_pull_ns),
        "created_at_ms": stream.created_at_ms,
        "expires_at_ms": stream.wall_ms(stream.expires_ns),
        "ttl_seconds": stream.ttl_seconds,
        "ended_at_ms": _wall_ms(stream, stream.ended_ns),
        "end_reason": "expired" if stream.end_reason == "reaped" else stream.end_reason,
        "audio": False,
        "vision_bench": {
            "refused_frames": {**ring.refused, **stream.dropped},
            "held_bytes": ring.held_bytes,
        },
    }


def _state(stream: Stream) -> str:
    return "active" if stream.is_active else "ended"


def _wall_ms(stream: Stream, at_ns: int | None) -> int | None:
    return None if at_ns is None else stream.wall_ms(at_ns)


def _frame_at_ms(stream: Stream, stream_ms: int | None) -> int | None:
    """A time on the stream's clock as Unix time, so that ``timestamp_ms`` plus the first frame's is exactly it."""
    origin_ns = stream.ring.origin_ns
    return None if stream_ms is None or origin_ns is None else stream.wall_ms(origin_ns) + stream_ms

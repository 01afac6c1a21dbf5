"""Rings with frames at stated times, for tests of what is read from them."""

from __future__ import annotations

from collections.abc import Iterable

from vision_bench.live.ring import FRAME_OVERHEAD_BYTES, Ring

MS = 1_000_000
START_NS = 5_000 * MS


def put(ring: Ring, at_ms: float) -> None:
    """One frame of three bytes that was seen at ``at_ms`` and received at once."""
    at_ns = START_NS + round(at_ms * MS)
    assert ring.append(b"jpg", width=4, height=3, at_ns=at_ns, received_ns=at_ns) is not None


def ring_of(times_ms: Iterable[float], *, held: int = 100_000) -> Ring:
    """The newest ``held`` of frames at ``times_ms`` after the first."""
    ring = Ring(limit_bytes=held * (3 + FRAME_OVERHEAD_BYTES), retention_ns=10**18)
    for at_ms in times_ms:
        put(ring, at_ms)
    return ring

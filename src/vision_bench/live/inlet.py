"""The one way into a stream: a picture is measured against the limits, and taken, or dropped with a reason that is
counted.

Runs on the event loop's thread, but for ``why_not``, which the one who makes the pictures asks from its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from vision_bench.live.clocks import Stamp
from vision_bench.live.registry import Stream
from vision_bench.live.ring import Frame

Dropped = Literal[
    "not_a_jpeg",
    "too_many_bytes",
    "too_many_pixels",
    "too_fast",
    "queue_full",
    "not_decoded",
    "not_after_the_last",
    "larger_than_the_ring",
    "ended",
]
"""``queue_full``: a newer frame had come before this one could be worked on. ``not_decoded``: it was damaged."""

BURST_NS = 500_000_000
"""How far ahead of an even pace frames may come: networks hold some back and then deliver them together."""


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """What one frame, and the pace of frames, may be."""

    frame_bytes: int = 4 * 2**20
    pixels: int = 1920 * 1080
    fps: float = 60.0

    @property
    def decoded_pixels(self) -> int:
        """What a decoder may make room for: some more than is wanted is decoded, and dropped with the right reason."""
        return max(4 * self.pixels, 1 << 16)


class Inlet:
    """Where the frames of one source enter their stream.

    Args:
        clock_id: the name of the server's clock in a frame's stamps.
    """

    def __init__(
        self, stream: Stream, limits: FrameLimits, *, clock_id: str, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.stream = stream
        self.limits = limits
        self.clock = clock
        self.clock_id = clock_id
        self._step_ns = round(1e9 / limits.fps)
        self._due_ns: int | None = None

    def stamp(self, at_ns: int) -> Stamp:
        """A reading of the server's clock."""
        return Stamp(self.clock_id, at_ns)

    def why_not(self, *, width: int, height: int, now_ns: int) -> Dropped | None:
        """Why a picture of this size that comes now is not wanted; None if it is, and then it has used up its turn.

        Asked before a picture is encoded, so that one that is not wanted costs nothing.
        """
        if not self.stream.is_active:
            return "ended"
        if width * height > self.limits.pixels:
            return "too_many_pixels"
        due_ns = now_ns if self._due_ns is None else max(self._due_ns, now_ns)
        if due_ns - now_ns > max(BURST_NS, self._step_ns) - self._step_ns:
            return "too_fast"
        self._due_ns = due_ns + self._step_ns
        return None

    def drop(self, reason: Dropped, count: int = 1) -> Dropped:
        """Count frames that were not taken."""
        self.stream.dropped[reason] += count
        return reason

    def store(
        self, jpeg: bytes, *, width: int, height: int, at_ns: int, stamps: Mapping[str, Stamp] | None = None
    ) -> Frame | Dropped:
        """Put a picture that was found wanted into the ring.

        Args:
            at_ns: when it was seen, on the server's clock, as well as is known; see ``Ring.append``.
        """
        if len(jpeg) > self.limits.frame_bytes:
            return self.drop("too_many_bytes")
        now_ns = self.clock()
        ring = self.stream.ring
        before = dict(ring.refused)
        stored = {**(stamps or {}), "stored": self.stamp(now_ns)}
        frame = ring.append(jpeg, width=width, height=height, at_ns=at_ns, received_ns=now_ns, stamps=stored)
        if frame is None:
            return next(reason for reason, count in ring.refused.items() if count > before.get(reason, 0))
        if self.stream.source is not None:
            self.stream.last_pull_ns = now_ns
        return frame

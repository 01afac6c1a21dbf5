"""Decoded pictures from a thread of their own into a stream: asked for, encoded, and given to the event loop.

Never more than a few wait for the loop: then the thread waits for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import av

from vision_bench.live.clocks import Stamp
from vision_bench.live.inlet import Dropped, Inlet
from vision_bench.live.pictures import JpegEncoder

PENDING_PICTURES = 8


@dataclass(frozen=True, slots=True)
class _Picture:
    jpeg: bytes
    width: int
    height: int
    at_ns: int
    stamps: Mapping[str, Stamp]


class Handover:
    """The way of one thread's pictures into one inlet. Everything but ``__init__`` is called on that thread.

    Attributes:
        is_over: the event loop has ended, and every stream with it.
    """

    def __init__(self, inlet: Inlet, *, loop: asyncio.AbstractEventLoop) -> None:
        self._inlet = inlet
        self._loop = loop
        self._encoder = JpegEncoder()
        self._pending = threading.BoundedSemaphore(PENDING_PICTURES)
        self.is_over = False

    def take(self, picture: av.VideoFrame, *, at_ns: int, arrived_ns: int, stamps: Mapping[str, Stamp]) -> None:
        """Store the picture, or count why not. One that is not wanted is not encoded."""
        reason = self._inlet.why_not(width=picture.width, height=picture.height, now_ns=arrived_ns)
        if reason is not None:
            self.drop(reason)
            return
        try:
            jpeg, width, height = self._encoder.encode(picture)
        except (av.FFmpegError, ValueError):
            self.drop("not_decoded")
            return
        made = _Picture(jpeg, width, height, at_ns, stamps)
        self._pending.acquire()
        self.in_loop(lambda: self._store(made))

    def drop(self, reason: Dropped) -> None:
        """Count a picture that is not stored."""
        self.in_loop(lambda: self._inlet.drop(reason))

    def in_loop(self, call: Callable[[], object]) -> None:
        """Have the event loop call something."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            self.is_over = True

    def _store(self, made: _Picture) -> None:
        self._pending.release()
        self._inlet.store(made.jpeg, width=made.width, height=made.height, at_ns=made.at_ns, stamps=made.stamps)

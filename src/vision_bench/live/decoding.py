"""Encoded frames to JPEGs in a stream, on a thread of their own, never more than a bounded number of frames behind.

Decoding needs every frame, for each is told by what changed; so what falls behind gives up the picture's JPEG first,
and only then frames, up to the next one that stands alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import av

from vision_bench.live.handover import Handover
from vision_bench.live.inlet import Inlet
from vision_bench.live.media_clock import MediaClock
from vision_bench.live.payloads import vp8_size
from vision_bench.live.release import EncodedFrame

QUEUE_FRAMES = 60
"""Encoded frames that wait for the decoder: two seconds at 30 a second."""
BEHIND_FRAMES = 3
"""With so many newer frames waiting, a picture is decoded and not encoded."""
Codec = Literal["vp8", "h264"]
_DECODERS: Mapping[Codec, str] = {"vp8": "libvpx", "h264": "h264"}


@dataclass(frozen=True, slots=True)
class Work:
    """One encoded frame on its way to the decoder. ``released_ns``: when it was handed over."""

    codec: Codec
    frame: EncodedFrame
    released_ns: int


class DecoderThread:
    """Decodes one source's frames into its inlet. ``put`` and ``close`` are the event loop's.

    Attributes:
        needs_key: a key frame is needed to go on; whoever can ask the sender for one does, and sets it to False.
    """

    def __init__(self, inlet: Inlet, *, loop: asyncio.AbstractEventLoop, name: str = "live-decoder") -> None:
        self._inlet = inlet
        self._hand = Handover(inlet, loop=loop)
        self._waiting: deque[Work] = deque()
        self._change = threading.Condition()
        self._is_closed = False
        self._skips_to_key = False
        self._skips_huge = False
        self._media = MediaClock()
        self.needs_key = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, work: Work) -> None:
        """Hand a frame over; when too many wait, they go, and so does what comes until the next key frame."""
        with self._change:
            if self._is_closed:
                return
            if self._skips_to_key and not work.frame.is_key:
                self._inlet.drop("queue_full")
                return
            self._skips_to_key = False
            if len(self._waiting) >= QUEUE_FRAMES:
                self._inlet.drop("queue_full", len(self._waiting))
                self._waiting.clear()
                if not work.frame.is_key:
                    self._inlet.drop("queue_full")
                    self._skips_to_key = self.needs_key = True
                    return
            self._waiting.append(work)
            self._change.notify()

    def close(self) -> None:
        """Stop after the frame that is being decoded. Does not wait for it."""
        with self._change:
            self._is_closed = True
            self._waiting.clear()
            self._change.notify()

    @property
    def is_running(self) -> bool:
        """Whether the thread is still there."""
        return self._thread.is_alive()

    def _next(self) -> tuple[Work, int] | None:
        with self._change:
            while not (self._waiting or self._is_closed):
                self._change.wait()
            return None if self._is_closed else (self._waiting.popleft(), len(self._waiting))

    def _run(self) -> None:
        decoder: Any = None
        codec: Codec | None = None
        while not self._hand.is_over and (taken := self._next()) is not None:
            work, behind = taken
            if work.codec != codec:
                codec, decoder = work.codec, _decoder(work.codec, max_pixels=self._inlet.limits.decoded_pixels)
            if self._is_huge(work):
                self._hand.drop("too_many_pixels")
                continue
            try:
                pictures = decoder.decode(av.Packet(work.frame.data))
            except av.FFmpegError:
                pictures = []
            if not pictures:
                self.needs_key = True
                self._hand.drop("not_decoded")
            for picture in pictures[-1:]:
                self._take(picture, work, behind)

    def _is_huge(self, work: Work) -> bool:
        """Whether libvpx would make room for a huge picture: it looks at no limit of libav's. What follows a frame that
        was left out for this stands on it."""
        if work.codec != "vp8":
            return False
        size = vp8_size(work.frame.data)
        if size is not None:
            self._skips_huge = size[0] * size[1] > self._inlet.limits.decoded_pixels
        return self._skips_huge

    def _take(self, picture: av.VideoFrame, work: Work, behind: int) -> None:
        inlet = self._inlet
        decoded_ns = inlet.clock()
        arrived_ns = work.frame.last_arrived_ns
        at_ns = self._media.at_ns(work.frame.timestamp, arrived_ns=arrived_ns)
        if behind >= BEHIND_FRAMES:
            self._hand.drop("queue_full")
            return
        stamps = {
            "arrived": inlet.stamp(arrived_ns),
            "released": inlet.stamp(work.released_ns),
            "decoded": inlet.stamp(decoded_ns),
        }
        self._hand.take(picture, at_ns=at_ns, arrived_ns=arrived_ns, stamps=stamps)


def _decoder(codec: Codec, *, max_pixels: int) -> Any:
    # One thread: more would keep frames back to have work for each. H.264's decoder refuses headers that name a huge
    # picture before it makes room for it.
    context: Any = av.CodecContext.create(_DECODERS[codec], "r")
    context.thread_count = 1
    context.options = {"max_pixels": str(max_pixels), "flags": "low_delay"}
    return context

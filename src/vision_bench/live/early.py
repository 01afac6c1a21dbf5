"""The early release of frames, put into aiortc's receiver: the one place that knows aiortc's insides.

Its receiver hands each packet to a jitter buffer and queues what that gives back, one frame at most, without a bound.
Here a buffer of ours takes the place of that one, gives nothing back, and hands every frame on by itself.
docs/decisions/0021-early-release.md has the reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from vision_bench.errors import OperatorError
from vision_bench.live.decoding import Codec, DecoderThread, Work
from vision_bench.live.payloads import Flags, h264_flags, vp8_flags
from vision_bench.live.release import FrameAssembler, Packet, Released

_BUFFER, _CODECS = "_RTCRtpReceiver__jitter_buffer", "_RTCRtpReceiver__codecs"
_FLAGS: dict[str, tuple[Codec, Callable[[bytes], Flags]]] = {
    "video/vp8": ("vp8", vp8_flags),
    "video/h264": ("h264", h264_flags),
}
KEY_INTERVAL_NS = 300_000_000
"""A key frame is asked for at most so often: it takes one round trip to come."""


def release_early(receiver: Any, decoder: DecoderThread, *, clock: Callable[[], int]) -> EarlyBuffer:
    """Have ``receiver``, an aiortc receiver of video that has not begun, hand its frames to ``decoder``.

    Raises:
        OperatorError: this aiortc is built in another way.
    """
    if not (hasattr(receiver, _BUFFER) and hasattr(receiver, _CODECS)):
        raise OperatorError("this aiortc has another receiver than was known here; install aiortc>=1.14,<1.17")
    buffer = EarlyBuffer(receiver, decoder, clock=clock)
    setattr(receiver, _BUFFER, buffer)
    return buffer


class EarlyBuffer:
    """Stands where aiortc's ``JitterBuffer`` stood. Runs on the event loop's thread."""

    def __init__(self, receiver: Any, decoder: DecoderThread, *, clock: Callable[[], int]) -> None:
        self._receiver = receiver
        self._decoder = decoder
        self._clock = clock
        self._assembler = FrameAssembler()
        self._timer: asyncio.TimerHandle | None = None
        self._codec: Codec | None = None
        self._ssrc = 0
        self._asked_ns: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, packet: Any) -> tuple[bool, None]:
        """Take a packet; whether the sender is to be asked for a key frame, and never a frame."""
        codec = getattr(self._receiver, _CODECS)[packet.payload_type]
        known = _FLAGS.get(codec.mimeType.lower())
        if known is None:
            return False, None
        self._codec, read_flags = known
        self._ssrc = packet.ssrc
        flags = read_flags(packet.payload)
        released = self._assembler.add(
            Packet(
                sequence=packet.sequence_number,
                timestamp=packet.timestamp,
                marker=bool(packet.marker),
                payload=packet._data,
                arrived_ns=self._clock(),
                starts=flags.starts,
                ends=flags.ends,
                is_key=flags.is_key,
            )
        )
        self._hand_on(released)
        self._set_timer()
        return self._wants_key(), None

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()

    def _hand_on(self, released: Released) -> None:
        if released.is_lost:
            self._decoder.needs_key = True
        for frame in released.frames:
            if self._codec is not None:
                self._decoder.put(Work(self._codec, frame, self._clock()))

    def _wants_key(self) -> bool:
        now_ns = self._clock()
        is_due = self._asked_ns is None or now_ns - self._asked_ns >= KEY_INTERVAL_NS
        if not (self._decoder.needs_key and is_due):
            return False
        self._decoder.needs_key = False
        self._asked_ns = now_ns
        return True

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ns = self._assembler.deadline_ns
        if deadline_ns is not None:
            wait_seconds = max(0.0, (deadline_ns - self._clock()) / 1e9)
            self._timer = asyncio.get_running_loop().call_later(wait_seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._hand_on(self._assembler.expire(self._clock()))
        self._set_timer()
        if self._wants_key():
            task = asyncio.ensure_future(self._receiver._send_rtcp_pli(self._ssrc))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

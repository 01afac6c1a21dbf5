"""The bounded history of one stream: its newest frames as JPEG, numbered for life.

Everything here runs on the event loop's thread; a decoder thread hands frames over with ``loop.call_soon_threadsafe``.
Readers get frames, which never change, and hold no lock: a slow question keeps at most its own frames alive, and never
the writer waiting.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast

from vision_bench.live.clocks import Stamp

FRAME_OVERHEAD_BYTES = 1_024
"""What a frame costs beside its JPEG; counted, so that tiny frames cannot pass the bound by their number."""
RECENT_NS = 5_000_000_000
"""The span over which ``recent_fps`` is taken."""
_RECENT_FRAMES = 512

Refused = Literal["not_after_the_last", "larger_than_the_ring", "ended"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: its lifetime index, its time on the stream's clock, and the picture."""

    index: int
    stream_ns: int
    """0 at the stream's first frame."""
    received_ns: int
    """When it came into the ring, on the server's monotonic clock: ages are counted from here."""
    jpeg: bytes
    width: int
    height: int
    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    """Readings taken on its way here, by the names in ``receipt``."""

    @property
    def stream_ms(self) -> int:
        """Whole milliseconds on the stream's clock, rounded down: asking for this time from here on finds the frame."""
        return self.stream_ns // 1_000_000

    @property
    def held_bytes(self) -> int:
        """What it takes of the ring's room."""
        return len(self.jpeg) + FRAME_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class RingState:
    """The ring in numbers at one moment. An index or time is None where there is no such frame."""

    last_index: int | None
    last_ms: int | None
    first_index: int | None
    first_ms: int | None
    retained_count: int
    evicted_count: int
    held_bytes: int
    recent_fps: float | None
    refused: Mapping[str, int]


class Ring:
    """Frames of the last ``retention_ns``, or as many of the newest as ``limit_bytes`` hold: whichever is less.

    Attributes:
        origin_ns: the server's monotonic clock at the first frame, where the stream's clock is 0; None before it.
        next_index: the index that the next frame will get; one more than the newest has.
        first_index: the oldest frame held; equal to ``next_index`` when none is.
        before_ns: the stream's time of the frame before the oldest held; None while nothing was evicted.
        held_bytes: frames and what each costs beside its picture; never above ``limit_bytes``.
        refused: frames that were not taken, by reason.
    """

    def __init__(self, *, limit_bytes: int, retention_ns: int) -> None:
        self.limit_bytes = limit_bytes
        self.retention_ns = retention_ns
        self.origin_ns: int | None = None
        self.next_index = 0
        self.before_ns: int | None = None
        self.held_bytes = 0
        self.is_ended = False
        self.refused: Counter[Refused] = Counter()
        self._frames: list[Frame | None] = []  # slots before _head are empty until the list is cut
        self._head = 0
        self._last_at_ns: int | None = None
        self._arrivals_ns: deque[int] = deque(maxlen=_RECENT_FRAMES)
        self._waiting: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._frames) - self._head

    def __getitem__(self, index: int) -> Frame:
        """The frame with a lifetime ``index``, which must be held."""
        if not self.first_index <= index < self.next_index:
            raise IndexError(f"frame {index} is not among {self.first_index} to {self.next_index - 1}")
        return cast(Frame, self._frames[self._head + index - self.first_index])

    def __iter__(self) -> Iterator[Frame]:
        return iter(self.frames(self.first_index, self.next_index))

    def frames(self, first: int, stop: int) -> list[Frame]:
        """Those of the frames ``first`` to ``stop - 1`` that are held; none when the range is empty or turned round."""
        first, stop = max(first, self.first_index), min(stop, self.next_index)
        skip = self._head - self.first_index
        return cast(list[Frame], self._frames[first + skip : stop + skip]) if first < stop else []

    @property
    def first_index(self) -> int:
        return self.next_index - len(self)

    @property
    def newest(self) -> Frame | None:
        """The last frame that is held."""
        return self[self.next_index - 1] if len(self) else None

    def index_at(self, stream_ms: int) -> int:
        """Lifetime index of the first frame held that is at ``stream_ms`` or later; ``next_index`` if there is none."""
        # The slots before the head are never looked at, and hold None.
        at = bisect_left(self._frames, stream_ms, lo=self._head, key=lambda frame: cast(Frame, frame).stream_ms)
        return self.first_index + at - self._head

    def append(
        self,
        jpeg: bytes,
        *,
        width: int,
        height: int,
        at_ns: int,
        received_ns: int,
        stamps: Mapping[str, Stamp] | None = None,
    ) -> Frame | None:
        """Take the next frame and wake who waits for one; None if it was refused, which ``refused`` counts.

        Args:
            at_ns: when the picture was seen, as well as is known, on the server's monotonic clock. The stream's clock
                runs on it, so it must ascend.
            received_ns: now, on the same clock.
        """
        origin_ns = at_ns if self.origin_ns is None else self.origin_ns
        frame = Frame(self.next_index, at_ns - origin_ns, received_ns, jpeg, width, height, stamps or {})
        self.evict(received_ns)
        reason = self._reason_to_refuse(frame, at_ns)
        if reason is not None:
            self.refused[reason] += 1
            return None
        self.origin_ns, self._last_at_ns = origin_ns, at_ns
        while self.held_bytes + frame.held_bytes > self.limit_bytes:
            self._drop_oldest()
        self._frames.append(frame)
        self.next_index += 1
        self.held_bytes += frame.held_bytes
        self._arrivals_ns.append(received_ns)
        self._wake()
        return frame

    def evict(self, now_ns: int) -> None:
        """Let go of frames that are older than the retention; a stream that stands still loses its frames too."""
        while len(self) and self[self.first_index].received_ns <= now_ns - self.retention_ns:
            self._drop_oldest()

    def end(self) -> None:
        """Let go of every frame, take no more, and wake who waits."""
        self.is_ended = True
        while len(self):
            self._drop_oldest()
        self._wake()

    def recent_fps(self, now_ns: int) -> float | None:
        """Frames a second over the last five seconds, or since the first frame; None while one frame is all there was.

        Refused frames do not count. A stream that stands still comes down to 0.0 within five seconds.
        """
        if not self._arrivals_ns:
            return None
        from_ns = max(now_ns - RECENT_NS, self._arrivals_ns[0])
        is_one_frame = len(self._arrivals_ns) == 1 and from_ns == self._arrivals_ns[0]
        if now_ns <= from_ns or is_one_frame:
            return None
        return sum(1 for at_ns in self._arrivals_ns if from_ns < at_ns <= now_ns) / ((now_ns - from_ns) / 1e9)

    def state(self, now_ns: int) -> RingState:
        """The ring in numbers, after letting go of what is too old."""
        self.evict(now_ns)
        newest = self.newest
        oldest = self[self.first_index] if newest else None
        return RingState(
            last_index=self.next_index - 1 if self.next_index else None,
            last_ms=self._last_ms(),
            first_index=oldest.index if oldest else None,
            first_ms=oldest.stream_ms if oldest else None,
            retained_count=len(self),
            evicted_count=self.first_index,
            held_bytes=self.held_bytes,
            recent_fps=self.recent_fps(now_ns),
            refused={str(reason): count for reason, count in self.refused.items()},
        )

    async def wait_for(self, look: Callable[[], T | None], *, timeout_seconds: float) -> T | None:
        """What ``look`` finds: asked now and after each frame; None when it found nothing in time or the ring ended.

        ``look`` runs in the caller's task, so neither its time nor its errors reach who appends.
        """
        found = look()
        if found is not None or timeout_seconds <= 0:
            return found
        try:
            async with asyncio.timeout(timeout_seconds) as limit:
                while found is None and not self.is_ended:
                    await self._next_change()
                    found = look()
        except TimeoutError:
            if not limit.expired():
                raise
        return found

    async def _next_change(self) -> None:
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(change)
        try:
            await change
        finally:
            self._waiting.discard(change)

    def _wake(self) -> None:
        for change in self._waiting:
            if not change.done():
                change.set_result(None)

    def _reason_to_refuse(self, frame: Frame, at_ns: int) -> Refused | None:
        if self.is_ended:
            return "ended"
        if self._last_at_ns is not None and at_ns <= self._last_at_ns:
            return "not_after_the_last"
        return "larger_than_the_ring" if frame.held_bytes > self.limit_bytes else None

    def _last_ms(self) -> int | None:
        if self.origin_ns is None or self._last_at_ns is None:
            return None
        return (self._last_at_ns - self.origin_ns) // 1_000_000

    def _drop_oldest(self) -> None:
        frame = cast(Frame, self._frames[self._head])
        self._frames[self._head] = None
        self._head += 1
        self.held_bytes -= frame.held_bytes
        self.before_ns = frame.stream_ns
        if self._head > 64 and self._head * 2 > len(self._frames):
            del self._frames[: self._head]
            self._head = 0

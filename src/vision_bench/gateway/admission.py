"""Who may be read and who may call vLLM now: room for bodies, permits, and how long a request may wait for both."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from vision_bench.errors import AcquireTimeout


@dataclass(slots=True)
class Timings:
    """How long one call waited and ran, filled in as it happens. None: it never came that far."""

    queue_ms: float | None = None
    """For room and for a permit together."""
    upstream_ms: float | None = None
    head_ms: float | None = None
    """From the permit to the head of vLLM's answer."""


class Admission:
    """The permits of one gateway, shared by every route, given out in the order of asking.

    Made once, inside the running event loop. ``in_use`` and ``waiting`` are for tests and operators.
    """

    def __init__(
        self, permits: int, *, acquire_timeout_seconds: float, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._semaphore = asyncio.Semaphore(permits)
        self._acquire_timeout_seconds = acquire_timeout_seconds
        self._clock = clock
        self.permits = permits
        self.in_use = 0
        self.waiting = 0

    def permit(self, timings: Timings) -> _Permit:
        """Hold one permit for the length of an ``async with`` block, however the block ends.

        Raises, on entering:
            AcquireTimeout: none came free in time; nothing is held then.
        """
        return _Permit(self, timings)

    async def acquire(self, timings: Timings) -> None:
        """Take a permit; ``release`` must follow. ``permit`` does both."""
        waited_ms = timings.queue_ms or 0.0
        began_ns = self._clock()
        self.waiting += 1
        try:
            if not self._semaphore.locked():
                await self._semaphore.acquire()  # returns without a turn of the loop
            else:
                await self._wait(self._acquire_timeout_seconds - waited_ms / 1e3)
        finally:
            self.waiting -= 1
            timings.queue_ms = waited_ms + (self._clock() - began_ns) / 1e6
        self.in_use += 1

    def release(self) -> None:
        """Give a permit back."""
        self.in_use -= 1
        self._semaphore.release()

    async def _wait(self, patience_seconds: float) -> None:
        try:
            # Not asyncio.wait_for: on Python 3.11 it swallows a cancellation that arrives together with the
            # permit, and the call would run for a caller who has left. asyncio.timeout awaits in this very task.
            async with asyncio.timeout(patience_seconds) as limit:
                await self._semaphore.acquire()
        except TimeoutError:
            if not limit.expired():
                raise
            raise AcquireTimeout(
                f"no permit came free in {self._acquire_timeout_seconds:g} s ({self.permits} in use); "
                "send fewer requests at once, or raise VLLM_CONCURRENCY or VLLM_ACQUIRE_TIMEOUT_SECONDS"
            ) from None


class _Permit:
    # A class, for it costs half of what a generator does.
    __slots__ = ("_admission", "_timings")

    def __init__(self, admission: Admission, timings: Timings) -> None:
        self._admission = admission
        self._timings = timings

    async def __aenter__(self) -> None:
        await self._admission.acquire(self._timings)

    async def __aexit__(self, *_: object) -> None:
        self._admission.release()


class Buffer:
    """Room for the bodies that the gateway holds, given out in the order of asking.

    A request takes room for its whole body before the first byte is read, so that uploads that are half read never
    wait for one another. Who has no room is not read: TCP tells the caller to wait.

    Made once, inside the running event loop. ``held_bytes`` and ``waiting`` are for tests and operators.
    """

    def __init__(
        self, limit_bytes: int, *, acquire_timeout_seconds: float, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self._acquire_timeout_seconds = acquire_timeout_seconds
        self._clock = clock
        self._queue: deque[tuple[asyncio.Future[None], int]] = deque()

    @property
    def waiting(self) -> int:
        """Requests that stand in front of the buffer."""
        return sum(not turn.done() for turn, _ in self._queue)

    def room(self, size_bytes: int, timings: Timings) -> Room:
        """Room for a body of ``size_bytes``, at most ``limit_bytes``, for the length of an ``async with`` block.

        Raises, on entering:
            AcquireTimeout: none came free in time; nothing is held then.
        """
        return Room(self, size_bytes, timings)

    async def take(self, size_bytes: int, timings: Timings) -> None:
        """Wait for room and hold it; ``give_back`` must follow. ``room`` does both."""
        if self._queue or self.held_bytes + size_bytes > self.limit_bytes:
            await self._wait(size_bytes, timings)
        else:
            self.held_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """That much is free again."""
        self.held_bytes -= size_bytes
        self._admit()

    async def _wait(self, size_bytes: int, timings: Timings) -> None:
        began_ns = self._clock()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((turn, size_bytes))
        try:
            async with asyncio.timeout(self._acquire_timeout_seconds) as limit:
                await turn
        except BaseException as problem:
            if turn.done() and not turn.cancelled():  # it came in the very moment in which we gave up
                self.held_bytes -= size_bytes
            turn.cancel()
            self._admit()
            if isinstance(problem, TimeoutError) and limit.expired():
                raise AcquireTimeout(
                    f"no room for {size_bytes} bytes came free in {self._acquire_timeout_seconds:g} s "
                    f"({self.limit_bytes} in all); send fewer requests at once, or raise GATEWAY_BUFFER_BYTES or "
                    "VLLM_ACQUIRE_TIMEOUT_SECONDS"
                ) from None
            raise
        finally:
            timings.queue_ms = (self._clock() - began_ns) / 1e6

    def _admit(self) -> None:
        """Let in who fits now, the first first."""
        while self._queue:
            turn, size_bytes = self._queue[0]
            if not turn.done():
                if self.held_bytes + size_bytes > self.limit_bytes:
                    return
                self.held_bytes += size_bytes
                turn.set_result(None)
            self._queue.popleft()


class Room:
    """What one request holds of the buffer."""

    __slots__ = ("_buffer", "_timings", "size_bytes")

    def __init__(self, buffer: Buffer, size_bytes: int, timings: Timings) -> None:
        self._buffer = buffer
        self._timings = timings
        self.size_bytes = size_bytes

    async def __aenter__(self) -> Self:
        await self._buffer.take(self.size_bytes, self._timings)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.shrink(0)

    def shrink(self, size_bytes: int) -> None:
        """Give back all but ``size_bytes``: the body was shorter than feared, or part of it is gone."""
        if size_bytes < self.size_bytes:
            freed_bytes = self.size_bytes - size_bytes
            self.size_bytes = size_bytes
            self._buffer.give_back(freed_bytes)


class Pace:
    """How many uploads are read in one turn of the event loop, so that hundreds of them leave time for everybody else.

    Each reads up to 256 kB a turn, which takes 0.1 to 0.2 ms. Who stands still in its upload holds nobody up: a turn
    is the right to ask for more, and is over at once.
    """

    PIECES_A_TURN = 8

    def __init__(self) -> None:
        self._left = self.PIECES_A_TURN
        self._queue: deque[asyncio.Future[None]] = deque()
        self._is_running = False

    async def turn(self) -> None:
        """Return when this upload may ask for its next piece: first come, first served."""
        loop = asyncio.get_running_loop()
        if not self._is_running:
            self._is_running = True
            loop.call_soon(self._next_turn, loop)
        if self._left and not self._queue:
            self._left -= 1
            return
        mine = loop.create_future()
        self._queue.append(mine)
        await mine

    def _next_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_running = self._left < self.PIECES_A_TURN or bool(self._queue)
        self._left = self.PIECES_A_TURN
        while self._left and self._queue:
            mine = self._queue.popleft()
            if not mine.done():  # it may have been cancelled
                mine.set_result(None)
                self._left -= 1
        if self._is_running:
            loop.call_soon(self._next_turn, loop)

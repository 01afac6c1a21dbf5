"""Whose body may be read now: room for it in memory, and a turn to read the next piece."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Self

from vision_bench.errors import AcquireTimeout
from vision_bench.gateway.timings import Timings


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
            ended_ns = self._clock()
            timings.queue_ms = (ended_ns - began_ns) / 1e6
            if timings.journal is not None:
                timings.journal.waited("room", began_ns, ended_ns, sys.exception())

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

    def free(self, size_bytes: int) -> None:
        """Give back that much, or what is left."""
        self.shrink(max(0, self.size_bytes - size_bytes))


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

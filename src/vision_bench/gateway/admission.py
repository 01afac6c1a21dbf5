"""Who may call vLLM now: the permits of each, one queue in front of all, and how long a call may wait in it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from vision_bench.errors import AcquireTimeout
from vision_bench.gateway.timings import Timings


@dataclass(slots=True, eq=False)
class Lane:
    """The permits of one vLLM.

    Attributes:
        index: its place in ``VLLM_BASE_URL``.
        in_use: calls that run now.
        set_aside_ns: when it failed last, if it is not to be used for now; None: it is in service.
        turn: rises with every permit given, so that of equals the one that has rested longest is next.
    """

    index: int
    permits: int
    in_use: int = 0
    set_aside_ns: int | None = None
    turn: int = 0


@dataclass(slots=True, eq=False)
class _Turn:
    """A call that waits. ``among``: the lanes it may take, by their places; None: any."""

    lane: asyncio.Future[Lane]
    among: frozenset[int] | None


class Admission:
    """The permits of one gateway, shared by every route: one queue, in the order of asking, in front of every vLLM.

    A permit is one of a certain vLLM: of those that have one free, the one with the fewest calls running. One that is
    set aside gets none, unless all are: then whichever failed longest ago is tried, for a server that may have come
    back is worth more than a certain refusal.

    Made once, inside the running event loop. ``permits``, ``in_use``, ``waiting`` and ``lanes`` are for tests and
    operators.
    """

    def __init__(
        self,
        permits: int,
        *,
        upstreams: int = 1,
        acquire_timeout_seconds: float,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.lanes = tuple(Lane(index, permits) for index in range(upstreams))
        self._acquire_timeout_seconds = acquire_timeout_seconds
        self._clock = clock
        self._queue: deque[_Turn] = deque()
        self._turns = 0

    @property
    def permits(self) -> int:
        """Of every vLLM together."""
        return sum(lane.permits for lane in self.lanes)

    @property
    def in_use(self) -> int:
        """Permits that are out, of every vLLM together."""
        return sum(lane.in_use for lane in self.lanes)

    @property
    def is_full(self) -> bool:
        """Whether the next call has to wait."""
        return bool(self._queue) or self.in_use >= self.permits

    @property
    def waiting(self) -> int:
        """Calls in the queue."""
        return len(self._queue)

    def permit(self, timings: Timings, *, at_front: bool = False) -> _Permit:
        """Hold one permit for the length of an ``async with`` block, however the block ends; its lane is the target.

        ``at_front``: a call that has waited its turn already and must go elsewhere.

        Raises, on entering:
            AcquireTimeout: none came free in time; nothing is held then.
        """
        return _Permit(self, timings, at_front)

    async def acquire(self, timings: Timings, *, at_front: bool = False) -> Lane:
        """Take a permit; ``release`` must follow. ``permit`` does both."""
        waited_ms = timings.queue_ms or 0.0
        began_ns = self._clock()
        among = None if timings.among is None else timings.among()
        try:
            lane = None if self._queue else self._take(among)
            return lane or await self._wait(self._acquire_timeout_seconds - waited_ms / 1e3, among, at_front=at_front)
        finally:
            ended_ns = timings.permitted_ns = self._clock()
            timings.queue_ms = waited_ms + (ended_ns - began_ns) / 1e6
            if timings.journal is not None:
                timings.journal.waited("permit", began_ns, ended_ns, sys.exception())

    def release(self, lane: Lane) -> None:
        """Give a permit back."""
        lane.in_use -= 1
        self._admit()

    def set_aside(self, lane: Lane) -> None:
        """Give out no permits of this vLLM while there is another one."""
        lane.set_aside_ns = self._clock()
        self._admit()  # it may have been the last one in service, and now all are tried

    def bring_back(self, lane: Lane) -> None:
        """Give out its permits again."""
        lane.set_aside_ns = None
        self._admit()

    def _take(self, among: frozenset[int] | None) -> Lane | None:
        """A permit, if one is free."""
        lane = self.lanes[0] if len(self.lanes) == 1 else self._choose(among)
        if lane is None or lane.in_use >= lane.permits:
            return None
        lane.in_use += 1
        return lane

    def _choose(self, among: frozenset[int] | None) -> Lane | None:
        lanes = self.lanes if among is None else [lane for lane in self.lanes if lane.index in among]
        in_service = [lane for lane in lanes if lane.set_aside_ns is None]
        free = [lane for lane in in_service or lanes if lane.in_use < lane.permits]
        if not free:
            return None
        if in_service:
            chosen = min(free, key=lambda lane: (lane.in_use, lane.turn))
        else:
            chosen = min(free, key=lambda lane: lane.set_aside_ns or 0)
        self._turns += 1
        chosen.turn = self._turns
        return chosen

    def _admit(self) -> None:
        """Let in who can go now, the first first. Who may take some lanes alone is passed by while those are full."""
        stay: list[_Turn] = []
        while self._queue:
            turn = self._queue[0]
            if not turn.lane.done():  # it may have been cancelled
                lane = self._take(turn.among)
                if lane is None and turn.among is None:
                    break
                if lane is None:
                    stay.append(turn)
                else:
                    turn.lane.set_result(lane)
            self._queue.popleft()
        self._queue.extendleft(reversed(stay))

    async def _wait(self, patience_seconds: float, among: frozenset[int] | None, *, at_front: bool) -> Lane:
        waiting = _Turn(asyncio.get_running_loop().create_future(), among)
        turn = waiting.lane
        if at_front:
            self._queue.appendleft(waiting)
        else:
            self._queue.append(waiting)
        self._admit()
        try:
            # Not asyncio.wait_for: on Python 3.11 it swallows a cancellation that arrives together with the
            # permit, and the call would run for a caller who has left. asyncio.timeout awaits in this very task.
            async with asyncio.timeout(patience_seconds) as limit:
                return await turn
        except BaseException as problem:
            if turn.done() and not turn.cancelled():  # it came in the very moment in which we gave up
                self.release(turn.result())
            with suppress(ValueError):
                self._queue.remove(waiting)
            if isinstance(problem, TimeoutError) and limit.expired():
                raise AcquireTimeout(
                    f"no permit came free in {self._acquire_timeout_seconds:g} s ({self.in_use} in use); "
                    "send fewer requests at once, or raise VLLM_CONCURRENCY or VLLM_ACQUIRE_TIMEOUT_SECONDS"
                ) from None
            raise


class _Permit:
    # A class, for it costs half of what a generator does.
    __slots__ = ("_admission", "_at_front", "_lane", "_timings")

    def __init__(self, admission: Admission, timings: Timings, at_front: bool) -> None:
        self._admission = admission
        self._timings = timings
        self._at_front = at_front

    async def __aenter__(self) -> Lane:
        self._lane = await self._admission.acquire(self._timings, at_front=self._at_front)
        return self._lane

    async def __aexit__(self, *_: object) -> None:
        self._admission.release(self._lane)

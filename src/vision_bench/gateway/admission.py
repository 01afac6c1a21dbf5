"""Who may call vLLM now: the permits, the queue in front of them, and how long a request may stand in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from vision_bench.errors import AcquireTimeout


@dataclass(slots=True)
class Timings:
    """How long one call waited and ran, filled in as it happens. None: it never came that far."""

    queue_ms: float | None = None
    upstream_ms: float | None = None


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

    @asynccontextmanager
    async def permit(self, timings: Timings) -> AsyncIterator[None]:
        """Hold one permit for the length of the block, however the block ends.

        Raises:
            AcquireTimeout: none came free in time; nothing is held then.
        """
        began_ns = self._clock()
        self.waiting += 1
        try:
            if not self._semaphore.locked():
                await self._semaphore.acquire()  # returns without a turn of the loop
            else:
                await self._wait()
        finally:
            self.waiting -= 1
            timings.queue_ms = (self._clock() - began_ns) / 1e6
        self.in_use += 1
        try:
            yield
        finally:
            self.in_use -= 1
            self._semaphore.release()

    async def _wait(self) -> None:
        try:
            # Not asyncio.wait_for: on Python 3.11 it swallows a cancellation that arrives together with the
            # permit, and the call would run for a caller who has left. asyncio.timeout awaits in this very task.
            async with asyncio.timeout(self._acquire_timeout_seconds) as limit:
                await self._semaphore.acquire()
        except TimeoutError:
            if not limit.expired():
                raise
            raise AcquireTimeout(
                f"no permit came free in {self._acquire_timeout_seconds:g} s ({self.permits} in use); "
                "send fewer requests at once, or raise VLLM_CONCURRENCY or VLLM_ACQUIRE_TIMEOUT_SECONDS"
            ) from None

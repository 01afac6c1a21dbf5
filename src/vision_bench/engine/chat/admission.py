"""Slots, first come first served, with vLLM's limit on how many may wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """``width`` samples run at once; the others wait in order of arrival."""

    def __init__(self, width: int, *, max_waiting: int | None) -> None:
        self._free = asyncio.Semaphore(width)
        self._max_waiting = max_waiting
        self.running = 0
        self.waiting = 0

    @property
    def is_full(self) -> bool:
        """Whether every slot is taken and the queue is as long as it may be."""
        return self._max_waiting is not None and self._free.locked() and self.waiting >= self._max_waiting

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Hold a slot; cancelling the wait or the work gives it back."""
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._free.release()

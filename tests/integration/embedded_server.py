"""uvicorn inside a test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

TICK_SECONDS = 0.01


class EmbeddedServer(uvicorn.Server):
    """Leaves signals to pytest, and stops when it is told to: uvicorn looks ten times a second, and hundreds of tests
    would wait for it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None."""
        yield

    async def main_loop(self) -> None:
        """As uvicorn's, with a shorter tick."""
        count = 0
        while not await self.on_tick(count):
            count += 1
            await asyncio.sleep(TICK_SECONDS)

"""uvicorn inside a test's own event loop."""

from __future__ import annotations

import asyncio
import socket
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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, which gives callers 0.1 s to leave, where there are any; else the end at once."""
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        await self.lifespan.shutdown()

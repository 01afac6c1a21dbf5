"""Sending a large body on while it comes, for a caller who is alone.

A call waits for a permit with its whole body here, so that a slow upload holds no permit. The wait of a caller who is
alone is all upload: first to the gateway, then to vLLM. Here the two are done side by side (docs/decisions/0004 has
what that brings, and where it brings nothing). With other callers there is nothing to win: the processor is the limit
then, and many small writes cost more than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from vision_bench.gateway.transport import HeadStart, TransportAnswer

LEAST_BYTES = 256 * 1024
"""Must have come before anything is sent on: a small body is sent at once, and the pace of a few bytes says nothing."""

SOON_SECONDS = 0.02
"""The end of the body is so near, at the pace so far, when it begins to go out: vLLM is not to hold half a request of
somebody with a slow line."""

PATIENCE_SECONDS = 1.0
"""The end was not near after all: a request that has not become a call so long after it began is broken off, and goes
out whole once it has come. A proxy before vLLM would lose its patience, and answer 408 to what is still on its way."""


class Ahead:
    """Sends a body on while it comes, all but its last piece, once its end is near. ``close`` must follow.

    Attributes:
        size_bytes: of the whole body, as its head says.
    """

    __slots__ = ("_began_at", "_limit", "_loop", "_pieces", "_start", "size_bytes")

    def __init__(self, start: HeadStart, size_bytes: int) -> None:
        self._start = start
        self._pieces: Sequence[bytes] = ()
        self.size_bytes = size_bytes
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        self._limit: asyncio.TimerHandle | None = None

    def came(self, pieces: Sequence[bytes], size_bytes: int) -> None:
        """``pieces``, so many bytes, are what is here of the body."""
        self._pieces = pieces
        if size_bytes < LEAST_BYTES:
            return
        pace_seconds = (self._loop.time() - self._began_at) / size_bytes
        if pace_seconds * (self.size_bytes - size_bytes) < SOON_SECONDS:
            self._start.send_but_last(pieces)
            if self._limit is None:
                self._limit = self._loop.call_later(PATIENCE_SECONDS, self._start.close)

    def call(self) -> AbstractAsyncContextManager[TransportAnswer]:
        """The call, with a permit and the whole body: what is left of it goes out."""
        return self._start.call(self._pieces)

    def close(self) -> None:
        """Nothing more is sent; what became no call is broken off."""
        if self._limit is not None:
            self._limit.cancel()
        self._start.close()

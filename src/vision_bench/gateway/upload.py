"""The body of a request on its way in: how long it may be, how long it may take, and its pieces as they come."""

from __future__ import annotations

import asyncio
from typing import Self

from starlette.types import Message, Receive, Scope

from vision_bench.gateway.ahead import Ahead
from vision_bench.gateway.exchange import ClientLeft, Refusal, header
from vision_bench.gateway.room import Pace

_SHORTEST_WAIT_SECONDS = 0.1
"""Between two looks at an upload that waits for the gateway itself."""


def declared_bytes(scope: Scope, *, limit_bytes: int) -> int:
    """How long the body may be: its Content-Length, or the limit when it has none, or chunks, whatever it says then.

    Raises:
        Refusal: 413, for a length over the limit.
    """
    declared = header(scope, b"content-length")
    # h11 lets a request through that has both; its chunks are what comes.
    if declared is None or header(scope, b"transfer-encoding") is not None:
        return limit_bytes
    size_bytes = int(declared.lstrip("0") or "0")  # int() takes no more than 4,300 digits, and zeros are allowed
    if size_bytes > limit_bytes:
        raise _too_large(f"{size_bytes} bytes", limit_bytes)
    return size_bytes


class Upload:
    """The body of a request as it comes, read inside a ``with`` block, which watches the time.

    Attributes:
        is_whole: its last byte has come.
        size_bytes: how much has come so far.
    """

    def __init__(
        self, receive: Receive, pace: Pace, *, limit_bytes: int, idle_seconds: float, timeout_seconds: float
    ) -> None:
        self._receive = receive
        self._pace = pace
        self._limit_bytes = limit_bytes
        self._idle_seconds = idle_seconds
        self._timeout_seconds = timeout_seconds
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle
        self._late: Refusal | None = None
        self._began_at = self._asked_at = 0.0
        self._is_waiting = False
        self._has_begun = False
        self.is_whole = False
        self.size_bytes = 0

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._began_at = self._asked_at = loop.time()
        # One timer for the whole upload, which looks at the time of the last piece: a timer a piece would cost more.
        self._timer = loop.call_later(min(self._idle_seconds, self._timeout_seconds), self._check, loop)
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    async def next_piece(self) -> bytes:
        """The next bytes of the body, refused as soon as it is known to be too big or too late; ``b""`` at its end.

        Raises:
            Refusal: 413, at most the limit was given out; 408, the caller stands still or takes too long.
            ClientLeft: the caller left before the end.
        """
        while not self.is_whole:
            if self._has_begun:
                await self._pace.turn()
            self._has_begun = True
            self._asked_at = asyncio.get_running_loop().time()
            message = await self._next_message()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            piece: bytes = message.get("body", b"")
            self.is_whole = not message.get("more_body", False)
            self.size_bytes += len(piece)
            if self.size_bytes > self._limit_bytes:
                raise _too_large(f"more than {self._limit_bytes} bytes", self._limit_bytes)
            if piece:
                return piece
        return b""

    async def read(self, ahead: Ahead | None = None) -> list[bytes]:
        """All pieces to the end; see ``next_piece``. They are not joined: a clip is copied once less.

        ``ahead`` is told of each.
        """
        pieces = []
        with self:
            while not self.is_whole:
                if piece := await self.next_piece():
                    pieces.append(piece)
                    if ahead is not None:
                        ahead.came(pieces, self.size_bytes)
        return pieces

    async def _next_message(self) -> Message:
        self._is_waiting = True
        try:
            return await self._receive()
        except asyncio.CancelledError:
            # Somebody else may have cancelled us too: a server that stops.
            if self._late is not None and self._task is not None and not self._task.uncancel():
                raise self._late from None
            raise
        finally:
            self._is_waiting = False

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the wait for a piece that is overdue; else look again when the next one will be.

        Time in which nobody asks for a piece is not the caller's: it counts as part of the upload, not as a pause.
        """
        now = loop.time()
        left_seconds = self._began_at + self._timeout_seconds - now
        pause_left_seconds = self._asked_at + self._idle_seconds - now
        if self._is_waiting and self._task is not None and min(left_seconds, pause_left_seconds) <= 0:
            self._late = self._too_slow() if left_seconds <= 0 else self._stands_still()
            self._task.cancel()
        else:
            wait_seconds = max(min(left_seconds, pause_left_seconds), _SHORTEST_WAIT_SECONDS)
            self._timer = loop.call_later(wait_seconds, self._check, loop)

    def _stands_still(self) -> Refusal:
        message = (
            f"no byte of the body came for {self._idle_seconds:g} s (GATEWAY_UPLOAD_IDLE_SECONDS), "
            f"{self.size_bytes} bytes had come; send it again"
        )
        return Refusal(408, message, type="upload_timeout")

    def _too_slow(self) -> Refusal:
        message = (
            f"the body had not come after {self._timeout_seconds:g} s (GATEWAY_UPLOAD_TIMEOUT_SECONDS), only "
            f"{self.size_bytes} bytes of it; send smaller clips or fewer items"
        )
        return Refusal(408, message, type="upload_timeout")


def _too_large(size: str, limit_bytes: int) -> Refusal:
    return Refusal(
        413,
        f"the body is {size}, the limit is {limit_bytes} (GATEWAY_MAX_BODY_BYTES); send smaller clips or fewer items",
        type="too_large",
    )

"""The body of a request on its way in: how long it may be, and its pieces as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.types import Receive, Scope

from vision_bench.gateway.admission import Pace
from vision_bench.gateway.exchange import ClientLeft, Refusal, header


def declared_bytes(scope: Scope, *, limit_bytes: int) -> int:
    """How long the body may be: its Content-Length, or the limit when it has none.

    Raises:
        Refusal: 413, for a length over the limit.
    """
    declared = header(scope, b"content-length")
    if declared is None:
        return limit_bytes
    if int(declared) > limit_bytes:
        raise _too_large(f"{declared} bytes", limit_bytes)
    return int(declared)


class Upload:
    """The body of a request as it comes.

    Attributes:
        is_whole: its last byte has come.
        size_bytes: how much has come so far.
    """

    def __init__(self, receive: Receive, pace: Pace, *, limit_bytes: int) -> None:
        self._receive = receive
        self._pace = pace
        self._limit_bytes = limit_bytes
        self.is_whole = False
        self.size_bytes = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body in the pieces in which it comes, refused as soon as it is known to be too big.

        Raises:
            Refusal: 413; at most the limit was given out.
            ClientLeft: the caller left before the end.
        """
        while not self.is_whole:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            piece = message.get("body", b"")
            self.is_whole = not message.get("more_body", False)
            self.size_bytes += len(piece)
            if self.size_bytes > self._limit_bytes:
                raise _too_large(f"more than {self._limit_bytes} bytes", self._limit_bytes)
            if piece:
                yield piece
            if not self.is_whole:
                await self._pace.turn()


def _too_large(size: str, limit_bytes: int) -> Refusal:
    return Refusal(
        413,
        f"the body is {size}, the limit is {limit_bytes} (GATEWAY_MAX_BODY_BYTES); send smaller clips or fewer items",
        type="too_large",
    )

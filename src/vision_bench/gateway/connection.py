"""One HTTP/1.1 connection to vLLM: one request at a time, the answer's pieces as they come.

Written by hand because a library's way of building, tracing and streaming one request cost more than all the rest of
the gateway (docs/decisions/0004). It knows sockets and HTTP, and nothing of permits, pools or retries.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping, Sequence

import httptools

from vision_bench.errors import BrokenStream, reason

Buffer = bytes | bytearray | memoryview

HEAD_LIMIT_BYTES = 64 * 1024
"""Headers of an answer. Nothing that speaks HTTP needs more; something else could send them for ever."""

READ_AHEAD_BYTES = 256 * 1024
"""What lies here unread before vLLM is asked to wait."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""struct linger: closing waits for nothing."""

_COPY_BYTES = 16 * 1024
"""Up to this size, head and body are joined into one write: a copy is cheaper than a second buffer."""


class Connection(asyncio.Protocol):
    """A connection that sends one request and then gives its answer.

    Attributes:
        is_reused: it has answered before.
        is_single_use: not to be used again, however it goes.
        is_reusable: the answer was whole and nothing speaks against another request.
        has_answered: at least one byte of an answer to the request at hand has come.
        status: of the answer; 0 until it has come.
        headers: of the answer, first of each name, names in Title-Case.
    """

    status: int
    headers: Mapping[str, str]
    is_reusable: bool
    has_answered: bool

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._problem: Exception | None = None
        self.is_closed = False
        self.is_reused = False
        self.is_single_use = False
        self.idle_since = 0.0
        self._is_idle = True
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.headers = self._headers = dict[str, str]()
        self.is_reusable = False
        self.has_answered = False
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = 0
        self._chunks: list[bytes] = []
        self._unread_bytes = 0
        self._is_paused = False
        self._has_head = False
        self._is_whole = False
        self._keeps_alive = False
        self._ends_with_connection = False

    # --- the caller's side

    def send(self, head: bytes, body: Buffer | Sequence[Buffer], size_bytes: int) -> None:
        """Begin a request. The body's buffers are sent as they lie there: leave them alone until the call is over."""
        self._is_idle = False
        self._reset()
        pieces = [body] if isinstance(body, bytes | bytearray | memoryview) else body
        if size_bytes <= _COPY_BYTES:
            self._write((b"".join((head, *pieces)),))
        else:
            self._write((head, *pieces))

    def send_more(self, pieces: Sequence[Buffer]) -> None:
        """Go on with a request whose body ``send`` was given the beginning of."""
        self._write(pieces)

    async def wait_for_head(self) -> None:
        """Return when status and headers are there.

        Raises:
            BrokenStream: the connection broke first.
        """
        while not self._has_head:
            if self._problem is not None:
                raise self._broken("vLLM closed the connection before it answered")
            await self._wait()

    async def read_some(self) -> bytes:
        """What has come of the body, waiting for the first byte of it; ``b""`` at the end.

        Raises:
            BrokenStream: the connection broke before the end.
        """
        while not self._chunks:
            if self._is_whole:
                return b""
            if self._problem is not None:
                raise self._broken("vLLM broke off in the middle of its answer")
            await self._wait()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._unread_bytes = 0
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def park(self, now: float) -> bool:
        """The call is over: whether this connection can wait for another one. ``now`` is the loop's time."""
        can_wait = (
            self.is_reusable
            and not self.is_single_use
            and not self.is_closed
            and not self._transport.is_closing()
            and not self._transport.get_write_buffer_size()  # answered before it had read the request to its end
        )
        if can_wait:
            self._is_idle = self.is_reused = True
            self.idle_since = now
        return can_wait

    def close(self) -> None:
        """Close at once, whatever is under way: vLLM sees it and stops generating."""
        if not (self._is_idle or self.is_closed or self._transport.is_closing()):
            # With a reset: the kernel would hold a plain goodbye back behind the rest of a body that vLLM does not
            # read, and the body with it.
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.is_closed = True
        self._transport.abort()

    def _write(self, pieces: Sequence[Buffer]) -> None:
        # That the connection has ended is told by ``wait_for_head``. asyncio's own transport writes into nothing then;
        # uvloop's raises a RuntimeError.
        if not self.is_closed:
            self._transport.writelines(pieces)

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _broken(self, what: str) -> BrokenStream:
        if isinstance(self._problem, OSError):
            broken = BrokenStream(f"{what} ({reason(self._problem)})")
        else:  # it is we who broke off
            broken = BrokenStream(
                f"what the server sent is no HTTP answer ({reason(self._problem)}); is VLLM_BASE_URL vLLM's /v1 "
                "endpoint, and http or https as it speaks?"
            )
        broken.__cause__ = self._problem
        return broken

    def _fail(self, problem: Exception) -> None:
        if not self._is_whole and self._problem is None:
            self._problem = problem
        self.is_reusable = False
        self._wake()

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._is_idle:  # nobody asked: a goodbye in words, or the rest of an answer that was longer than it said
            self.close()
            return
        self.has_answered = True
        if not self._has_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES + len(data):
                self._fail(ValueError("headers without end"))
                self.close()
                return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
            self._fail(problem)
            self.close()
            return
        if self._unread_bytes > READ_AHEAD_BYTES and not self._is_paused and not self._is_whole:
            self._is_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        return False  # closes the transport: connection_lost follows

    def connection_lost(self, problem: Exception | None) -> None:
        self.is_closed = True
        if self._has_head and self._ends_with_connection and problem is None:
            self._is_whole = True
        self._fail(problem or ConnectionResetError("closed"))

    # --- the parser's side

    def on_message_begin(self) -> None:
        if self._is_whole:  # bytes behind the answer: what they belong to nobody knows
            self._keeps_alive = self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.decode("latin-1").title(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        if self._is_whole:
            return
        status = self._parser.get_status_code()
        if status < 200:  # 100 Continue, 103 Early Hints: the answer is still to come
            self._headers.clear()
            return
        self.status = status
        self._keeps_alive = self._parser.should_keep_alive()
        self._ends_with_connection = not (
            "Content-Length" in self._headers or self._headers.get("Transfer-Encoding", "").lower().endswith("chunked")
        )
        self._has_head = True
        self._wake()

    def on_body(self, data: bytes) -> None:
        if self._is_whole:
            return
        self._chunks.append(data)
        self._unread_bytes += len(data)
        self._wake()

    def on_message_complete(self) -> None:
        if not self._has_head:
            return
        if not self._is_whole:
            self._is_whole = True
            # vLLM closes the connection after a 500 without saying so.
            self.is_reusable = self._keeps_alive and self.status < 500
        self._wake()

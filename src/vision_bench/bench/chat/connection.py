"""One HTTP/1.1 connection that stamps what comes in the transport's own callback, before anything is parsed.

A library between socket and stamp adds its own work to every latency, most of all when many answers stream at once.
This knows sockets and HTTP: what the bytes mean is its reader's business.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import httptools

HEAD_LIMIT_BYTES = 64 * 1024


class Reader(Protocol):
    """Who is told what comes, as it comes."""

    @property
    def is_finished(self) -> bool:
        """Whether nothing that may still come matters: the clock stops here."""
        ...

    def head(self, status: int, headers: dict[str, str], now_ns: int) -> None:
        """Status and headers, names in lower case."""
        ...

    def body(self, data: bytes, now_ns: int) -> None:
        """A piece of the body, as the network cut it. ``now_ns``: when it came."""
        ...


class Connection(asyncio.Protocol):
    """Sends one request at a time and stamps its answer.

    Attributes:
        hdr_ns, bod_ns: first and last byte of the request handed to the kernel; ``bod_ns`` 0 while some wait.
        end_ns: the read with which the answer was over.
        response_bytes: of the answer at hand, headers and framing included.
        problem: what ended the connection before the answer was whole.
        on_rest: called when what came behind a finished answer is over: the connection may be used again, or not.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._reader: Reader | None = None
        self._done: asyncio.Future[None] | None = None
        self._now_ns = 0
        self.is_closed = False
        self.idle_since = 0.0
        self.on_rest: Callable[[], None] | None = None

    async def exchange(self, head: bytes, body: Sequence[bytes | memoryview], reader: Reader) -> None:
        """Send a request; return when its answer is over, finished or broken off (then ``problem`` says how)."""
        self._reader = reader
        self._done = self._loop.create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._has_head = self.is_whole = self._keeps_alive = self._ends_with_connection = False
        self.problem: Exception | None = None
        self.response_bytes = self.end_ns = self.bod_ns = 0
        # The first write carries head and body together where that costs no great copy: one packet, one system call.
        first, *rest = body
        self.hdr_ns = time.monotonic_ns()
        if len(first) <= 16384:
            self._transport.write(head + first)
        else:
            self._transport.write(head)
            self._transport.write(first)
        for piece in rest:
            self._transport.write(piece)
        if not self._transport.get_write_buffer_size():
            self.bod_ns = time.monotonic_ns()
        try:
            await self._done
        finally:
            self._done = None

    @property
    def can_be_reused(self) -> bool:
        """The answer was whole and nothing speaks against another request."""
        return (
            self.is_whole
            and self._keeps_alive
            and not self.is_closed
            and not self._transport.is_closing()
            and not self._transport.get_write_buffer_size()
        )

    def park(self) -> None:
        """Wait for another request: whatever comes now closes the connection."""
        self._reader = None

    def close(self) -> None:
        """Close at once."""
        self.is_closed = True
        self._transport.abort()

    def _finish(self) -> None:
        if self._done is not None and not self._done.done():
            self.end_ns = self._now_ns
            self._done.set_result(None)
        if self.on_rest is not None and (self.is_whole or self.problem is not None):
            on_rest, self.on_rest = self.on_rest, None
            on_rest()

    def _fail(self, problem: Exception) -> None:
        if not self.is_whole and self.problem is None:
            self.problem = problem
        self._now_ns = time.monotonic_ns()
        self._finish()

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=0)  # so that resume_writing tells when the last byte has left

    def pause_writing(self) -> None:
        pass

    def resume_writing(self) -> None:
        if self._reader is not None and not self._transport.get_write_buffer_size():
            self.bod_ns = time.monotonic_ns()

    def data_received(self, data: bytes) -> None:
        self._now_ns = time.monotonic_ns()
        if self._reader is None:  # nobody asked
            self.close()
            return
        self.response_bytes += len(data)
        if not self._has_head and self.response_bytes > HEAD_LIMIT_BYTES + len(data):
            self._fail(ValueError("headers without end"))
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
            self._fail(problem)
            self.close()

    def connection_lost(self, problem: Exception | None) -> None:
        self.is_closed = True
        if self._reader is None:
            return
        if self._has_head and self._ends_with_connection and problem is None:
            self.is_whole = True
        self._fail(problem or ConnectionResetError(errno.ECONNRESET, "closed"))

    # --- the parser's side

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self.is_whole or self._reader is None:  # a second answer that nobody asked for
            self._keeps_alive = False
            return
        if status < 200:  # 100 Continue, 103 Early Hints: the answer is still to come
            self._headers = {}
            return
        self._has_head = True
        # vLLM closes the connection after a 500 without saying so.
        self._keeps_alive = self._parser.should_keep_alive() and status < 500
        encoding = self._headers.get("transfer-encoding", "").lower()
        self._ends_with_connection = "content-length" not in self._headers and not encoding.endswith("chunked")
        self._reader.head(status, self._headers, self._now_ns)

    def on_body(self, data: bytes) -> None:
        reader = self._reader
        if reader is None or self.is_whole or reader.is_finished:
            return
        reader.body(data, self._now_ns)
        if reader.is_finished:
            self._finish()

    def on_message_complete(self) -> None:
        if self._has_head:
            self.is_whole = True
            self._finish()

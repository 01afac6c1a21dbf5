"""A loopback stand-in for vLLM that can sleep, drip bytes and break off, and that counts what it sees.

It speaks raw HTTP/1.1 over asyncio streams, so that nothing between a test and the socket tidies up.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

CHAT_ANSWER: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "qwen",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "안녕"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}


@dataclass(slots=True)
class StubRequest:
    """One request as it came: header names in lower case, the body's bytes."""

    path: str
    headers: dict[str, str]
    body: bytes
    came_at: float

    def json(self) -> Any:
        return json.loads(self.body)


Behaviour = Callable[[StubRequest, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class StubUpstream:
    """What the stub does, and what it has counted.

    Attributes:
        behaviour: answers each request; changed by a test at any time.
        begun: requests whose head has come, whether the body follows or not.
        open_connections: sockets open now.
        running: requests being answered now; ``most_running`` is the greatest number ever.
        abandoned: requests whose caller closed the socket before the answer was through.
        closes_silently: close the connection after each answer without having said so.
    """

    behaviour: Behaviour
    requests: list[StubRequest] = field(default_factory=list)
    port: int = 0
    begun: int = 0
    open_connections: int = 0
    total_connections: int = 0
    running: int = 0
    most_running: int = 0
    abandoned: int = 0
    abandoned_at: list[float] = field(default_factory=list)
    closes_silently: bool = False
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None

    def stop(self) -> None:
        """Listen no more and cut every connection, as a server that is killed."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    @property
    def base_url(self) -> str:
        """What VLLM_BASE_URL is set to."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.open_connections += 1
        self.total_connections += 1
        try:
            while (request := await self._read_request(reader)) is not None:
                if not await self._answer(request, reader, writer) or self.closes_silently:
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open_connections -= 1
            self._tasks.discard(task)
            writer.close()

    async def _read_request(self, reader: asyncio.StreamReader) -> StubRequest | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        self.begun += 1
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return StubRequest(first.split(" ")[1], headers, body, time.monotonic())

    async def _answer(self, request: StubRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection can take another request."""
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        answering = asyncio.ensure_future(self.behaviour(request, writer))
        leaving = asyncio.ensure_future(reader.read(1))  # a caller that waits for its answer sends nothing
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self.abandoned += 1
                self.abandoned_at.append(time.monotonic())
                return False
            answering.result()
            return not writer.is_closing()
        finally:
            self.running -= 1
            for waiting in (answering, leaving):
                waiting.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)


@asynccontextmanager
async def stub_upstream(behaviour: Behaviour | None = None, *, port: int = 0) -> AsyncIterator[StubUpstream]:
    """A running stub on ``port`` of 127.0.0.1, or on a free one."""
    stub = StubUpstream(behaviour or answers())
    server = await asyncio.start_server(stub._connection, "127.0.0.1", port, limit=1 << 28, backlog=1024)
    stub._server = server
    stub.port = server.sockets[0].getsockname()[1]
    try:
        yield stub
    finally:
        tasks = tuple(stub._tasks)
        stub.stop()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def response(
    body: bytes, *, status: int = 200, content_type: str = "application/json", extra: Sequence[str] = ()
) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *extra]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunk(data: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n" % len(data) + data + b"\r\n"


LAST_CHUNK = b"0\r\n\r\n"


def stream_head(content_type: str = "text/event-stream; charset=utf-8") -> bytes:
    """Status and headers of a chunked answer."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def answers(
    body: Any = None, *, delay_seconds: float = 0.0, status: int = 200, content_type: str = "application/json"
) -> Behaviour:
    """Answer everything with ``body`` (an object, or bytes as they are) after a while."""
    payload = body if isinstance(body, bytes) else json.dumps(CHAT_ANSWER if body is None else body).encode()

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay_seconds)
        writer.write(response(payload, status=status, content_type=content_type))
        await writer.drain()

    return behave


def streams(
    chunks: Sequence[bytes],
    *,
    gap_seconds: float = 0.0,
    then: str = "end",
    content_type: str = "text/event-stream; charset=utf-8",
) -> Behaviour:
    """Send ``chunks`` one by one, then ``end`` properly, ``reset`` the socket, or fall ``silent``."""

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head(content_type))
        for data in chunks:
            writer.write(chunk(data))
            await writer.drain()
            await asyncio.sleep(gap_seconds)
        if then == "end":
            writer.write(LAST_CHUNK)
            await writer.drain()
        elif then == "reset":
            await asyncio.sleep(0.05)  # what was written has arrived: the break comes after it
            reset(writer)
        else:
            await asyncio.sleep(3600)

    return behave


def reset(writer: asyncio.StreamWriter) -> None:
    """Cut the connection."""
    writer.transport.abort()


def by_index(special: dict[int, Behaviour], other: Behaviour) -> Behaviour:
    """Treat the batch items of these indexes (the end of their X-Request-Id) in their own way."""

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        index = int(request.headers["x-request-id"].rpartition("-")[2])
        await special.get(index, other)(request, writer)

    return behave

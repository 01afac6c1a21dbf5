"""The callers: a closed loop of connections that each send the next request when the answer to the last is whole."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from benchmarks.gateway.stub import STREAM_MARK


class Call(NamedTuple):
    """One request as its caller saw it, in ns: to the first byte of the answer's body, and to its last."""

    first_ns: int
    whole_ns: int


class Load(NamedTuple):
    """What one cell measured."""

    calls: list[Call]
    seconds: float


def chat_body(size_bytes: int, *, is_streamed: bool = False) -> bytes:
    """A chat body of exactly this size, most of it one clip in base64."""
    head = (STREAM_MARK + b"," if is_streamed else b"{") + (
        b'"model":"qwen","messages":[{"role":"user","content":[{"type":"text","text":"What happens?"},'
        b'{"type":"video_url","video_url":{"url":"data:video/mp4;base64,'
    )
    tail = b'"}}]}],"temperature":0.3,"max_tokens":1024}'
    return head + b"QUJD" * ((size_bytes - len(head) - len(tail)) // 4) + tail


def request_bytes(path: str, body: bytes) -> bytes:
    """The whole request as it stands on the wire."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


class Caller(asyncio.Protocol):
    """One kept-alive connection."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._seen = b""
        self._first_ns = 0
        self._done: asyncio.Future[int]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    async def call(self, request: bytes) -> Call:
        """Send, wait for the whole answer. Anything but a 200 stops the benchmark: it would measure errors."""
        self._seen, self._first_ns = b"", 0
        self._done = asyncio.get_running_loop().create_future()
        began_ns = time.monotonic_ns()
        self._transport.write(request)
        ended_ns = await self._done
        return Call(self._first_ns - began_ns, ended_ns - began_ns)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, _mark, body = self._seen.partition(b"\r\n\r\n")
        if not body:
            return
        if not self._first_ns:
            self._first_ns = time.monotonic_ns()
            if not head.startswith(b"HTTP/1.1 200"):
                self._fail(RuntimeError(f"not a 200: {self._seen[:500]!r}"))
                return
        length = head.lower().partition(b"content-length:")[2].partition(b"\r")[0]
        if (len(body) >= int(length)) if length else body.endswith(b"0\r\n\r\n"):
            self._done.set_result(time.monotonic_ns())

    def connection_lost(self, problem: Exception | None) -> None:
        self._fail(ConnectionError("the connection was closed in the middle of a call"))

    def _fail(self, problem: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(problem)

    def close(self) -> None:
        """End the connection."""
        self._transport.abort()


async def drive(port: int, request: bytes, *, concurrency: int, seconds: float, warm_up: int) -> Load:
    """Keep ``concurrency`` requests going for ``seconds``, after ``warm_up`` unmeasured ones on each connection."""
    loop = asyncio.get_running_loop()
    callers = [(await loop.create_connection(Caller, "127.0.0.1", port))[1] for _ in range(concurrency)]
    calls: list[Call] = []

    async def warm(caller: Caller) -> None:
        for _ in range(warm_up):
            await caller.call(request)

    async def run(caller: Caller, until_ns: int) -> None:
        while time.monotonic_ns() < until_ns:
            calls.append(await caller.call(request))

    try:
        await asyncio.gather(*(warm(caller) for caller in callers))
        began_ns = time.monotonic_ns()
        until_ns = began_ns + round(seconds * 1e9)
        await asyncio.gather(*(run(caller, until_ns) for caller in callers))
        return Load(calls, (time.monotonic_ns() - began_ns) / 1e9)
    finally:
        for caller in callers:
            caller.close()

"""The upstream of the benchmark, one process: it swallows a body and answers at once.

    python -m benchmarks.gateway.stub [SECONDS]      answers after so many seconds, at once if not told

It is as cheap as Python gets, so that the proxies in front of it are what is measured: bodies are received into one
buffer that is never looked at. A body that begins with ``{"stream":true`` is answered with a short event stream.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time

import uvloop

ANSWER = json.dumps(
    {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 1,
        "model": "qwen",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
).encode()
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER

STREAM_MARK = b'{"stream":true'
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}\n\n'
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
FIRST_EVENT = STREAM_HEAD + b"%x\r\n" % len(EVENT) + EVENT + b"\r\n"
LAST_EVENT = b"%x\r\n" % len(EVENT) + EVENT + b"\r\n0\r\n\r\n"
STREAM_SECONDS = 0.01

CLIP_BYTES = 100_000
_BUFFER_BYTES = 1 << 20


class Swallow(asyncio.BufferedProtocol):
    """One connection: counts the body's bytes, then answers."""

    first_clip_ns: int | None = None
    """When the first body of ``CLIP_BYTES`` or more, of all connections, was whole; on the monotonic clock."""

    def __init__(self, delay_seconds: float) -> None:
        self._delay_seconds = delay_seconds
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._head = b""
        self._left = self._size_bytes = 0
        self._is_stream = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._left:
            self._took(nbytes)
            return
        self._head += self._buffer[:nbytes]
        head, mark, body = self._head.partition(b"\r\n\r\n")
        if not mark or (b"content-length: 0" not in head.lower() and len(body) < len(STREAM_MARK)):
            return
        self._size_bytes = self._left = int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])
        self._is_stream = body.startswith(STREAM_MARK)
        self._head = b""
        self._took(len(body))

    def _took(self, nbytes: int) -> None:
        self._left -= nbytes
        if self._left:
            return
        if self._size_bytes >= CLIP_BYTES and Swallow.first_clip_ns is None:
            Swallow.first_clip_ns = time.monotonic_ns()
        if self._delay_seconds:
            asyncio.get_running_loop().call_later(self._delay_seconds, self._transport.write, PLAIN)
            return
        if not self._is_stream:
            self._transport.write(PLAIN)
            return
        self._transport.write(FIRST_EVENT)
        asyncio.get_running_loop().call_later(STREAM_SECONDS, self._transport.write, LAST_EVENT)


async def main() -> None:
    """Serve on a free port of loopback, told on stdout, until stdin ends: so it cannot outlive the benchmark.

    Then say when the first large body was whole.
    """
    delay_seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Swallow(delay_seconds), "127.0.0.1", 0, backlog=1024)
    listener: socket.socket = server.sockets[0]
    print(listener.getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    print(Swallow.first_clip_ns, flush=True)


if __name__ == "__main__":
    uvloop.run(main())

"""The upstream of the soak: it reads in each body what to do with it, and counts what its callers do.

A process of its own, so that it can be killed and started on the same port. It is told what to do over stdin
(``state``, ``forget``), answers on stdout, and ends when stdin does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import struct
import sys
import time
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial

import uvloop
from benchmarks.soak import faults

PEEK_BYTES = 128
"""The start of a body; ``plan.Call.body`` writes the orders into it."""

CALL_LIMIT_SECONDS = 2.0
"""The gateway's VLLM_TIMEOUT_SECONDS. A held call that lasts so long was ended by it, not by its caller's leaving."""

LARGE_BYTES = 1_500_000
_ORDERS = re.compile(rb'"soak":"(\S+) (\w+) (\d+) ')


@dataclass(slots=True)
class State:
    """What the stub has counted.

    Attributes:
        open_connections: now.
        running: calls now; ``most_running``: since it was told to forget.
        calls: whole requests so far.
        held: calls that waited for their caller's end; ``outlived``: those that waited as long as a call may last.
    """

    open_connections: int = 0
    running: int = 0
    most_running: int = 0
    calls: int = 0
    held: int = 0
    outlived: int = 0


@dataclass(slots=True)
class Call:
    """One request at hand."""

    marker: str
    delay_seconds: float
    crc: int
    writer: asyncio.StreamWriter
    state: State
    is_running: bool = False

    def begin(self) -> None:
        """Counted as running."""
        self.is_running = True
        self.state.calls += 1
        self.state.running += 1
        self.state.most_running = max(self.state.most_running, self.state.running)

    def end(self) -> None:
        """No longer running: before the last byte leaves, for the caller may begin another call on it."""
        self.state.running -= self.is_running
        self.is_running = False

    async def send(self, data: bytes) -> None:
        if self.writer.is_closing():  # uvloop would say so with a RuntimeError
            raise ConnectionResetError
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes, *, status: int = 200, type: str = "application/json", extra: str = "") -> None:
        """A whole answer, and what the orders say it takes before it."""
        await asyncio.sleep(self.delay_seconds)
        self.end()
        await self.send(_head(status, type, f"Content-Length: {len(body)}\r\n{extra}") + body)

    def chat(self, **more: object) -> bytes:
        """A chat answer that names its request and the checksum of what came."""
        choices = [{"index": 0, "message": {"role": "assistant", "content": "안녕"}, "finish_reason": "stop"}]
        answer = {"object": "chat.completion", "marker": self.marker, "crc": self.crc, "choices": choices, **more}
        return json.dumps(answer, ensure_ascii=False).encode()

    def event(self, number: int, pad: str = "") -> bytes:
        """One event of a stream, as a chunk."""
        delta = [{"index": 0, "delta": {"content": f"{number}{pad}"}}]
        return _chunk(f"data: {json.dumps({'marker': self.marker, 'crc': self.crc, 'choices': delta})}\n\n".encode())

    async def begin_stream(self, events: int) -> None:
        await asyncio.sleep(self.delay_seconds)
        await self.send(_head(200, "text/event-stream; charset=utf-8", "Transfer-Encoding: chunked\r\n"))
        for number in range(events):
            await self.send(self.event(number))
            await asyncio.sleep(0.002)

    async def end_stream(self) -> None:
        await self.send(_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    async def reset(self) -> None:
        """Cut the connection, after what was written has arrived."""
        await asyncio.sleep(0.01)
        cut(self.writer)


async def _never() -> None:
    await asyncio.Event().wait()


async def _ok(call: Call) -> None:
    await call.answer(call.chat())


async def _large(call: Call) -> None:
    await call.answer(call.chat(pad="x" * LARGE_BYTES))


async def _drip(call: Call) -> None:
    answer = call.chat()
    await call.send(_head(200, "application/json", f"Content-Length: {len(answer)}\r\n"))
    for start in range(0, len(answer), 16):
        await call.send(answer[start : start + 16])
        await asyncio.sleep(0.01)


async def _surplus(call: Call) -> None:
    """A whole answer to nobody behind the right one: it must never be taken for the next caller's."""
    answer, intruder = call.chat(), b'{"marker":"intruder"}'
    second = _head(200, "application/json", f"Content-Length: {len(intruder)}\r\n") + intruder
    await call.send(_head(200, "application/json", f"Content-Length: {len(answer)}\r\n") + answer + second)


async def _closes(call: Call) -> None:
    """A good answer, and the end of the connection without a word about it."""
    await _ok(call)
    call.writer.close()


async def _http(call: Call, status: int, extra: str = "") -> None:
    error = {"message": f"planned for {call.marker}", "type": "planned", "param": None, "code": status}
    await call.answer(json.dumps({"error": error}).encode(), status=status, extra=extra)
    if status == 500:  # as vLLM does
        call.writer.close()


async def _early(call: Call) -> None:
    await _http(call, 413)
    await call.reset()


async def _reset_before(call: Call) -> None:
    await asyncio.sleep(call.delay_seconds)
    await call.reset()


async def _reset_in_head(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await call.reset()


async def _reset_in_body(call: Call) -> None:
    await call.send(_head(200, "application/json", "Content-Length: 1000\r\n") + call.chat()[:50])
    await call.reset()


async def _short(call: Call) -> None:
    """Fewer bytes than it says, and a proper end."""
    answer = call.chat()
    await call.send(_head(200, "application/json", f"Content-Length: {len(answer) + 10}\r\n") + answer)
    call.writer.close()


async def _no_http(call: Call) -> None:
    await call.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await call.reset()


async def _endless_head(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\n")
    while not call.writer.is_closing():
        await call.send(b"X-More: and more\r\n" * 100)


async def _bad_chunks(call: Call) -> None:
    await call.send(_head(200, "application/json", "Transfer-Encoding: chunked\r\n") + b"zz\r\nno size\r\n")
    await _never()


async def _bad_status(call: Call) -> None:
    await call.answer(b"", status=204)


async def _silence_in_body(call: Call) -> None:
    await call.send(_head(200, "application/json", "Content-Length: 1000\r\n") + b'{"marker"')
    await _never()


async def _endless_drip(call: Call) -> None:
    await call.send(_head(200, "application/json", "Transfer-Encoding: chunked\r\n"))
    while True:
        await call.send(_chunk(b" "))
        await asyncio.sleep(0.05)


async def _nan(call: Call) -> None:
    await call.answer(call.chat(logprobs=[float("nan"), float("-inf"), 1.5]))


async def _error_200(call: Call) -> None:
    await call.answer(json.dumps({"error": {"message": f"planned for {call.marker}"}}).encode())


async def _stream(call: Call) -> None:
    await call.begin_stream(5)
    await call.end_stream()


async def _long_stream(call: Call) -> None:
    await call.begin_stream(1)
    for number in range(1, 30):
        await call.send(call.event(number, "x" * 50_000))
    await call.end_stream()


async def _flood(call: Call) -> None:
    await call.begin_stream(1)
    while True:
        await call.send(call.event(1, "x" * 50_000))


async def _endless_stream(call: Call) -> None:
    await call.begin_stream(1)
    while True:
        await call.send(call.event(1))
        await asyncio.sleep(0.05)


async def _reset_in_stream(call: Call) -> None:
    await call.begin_stream(3)
    await call.reset()


async def _bad_chunks_in_stream(call: Call) -> None:
    await call.begin_stream(2)
    await asyncio.sleep(0.01)  # so that the events have been passed on before the nonsense comes
    await call.send(b"-5\r\n")
    await _never()


async def _silence_in_stream(call: Call) -> None:
    await call.begin_stream(2)
    await _never()


async def _error_in_stream(call: Call) -> None:
    """As vLLM does: an error event, and then the proper end."""
    await call.begin_stream(2)
    await call.send(_chunk(b'data: {"error":{"message":"planned for %s"}}\n\n' % call.marker.encode()))
    await call.end_stream()


BEHAVIOURS: dict[str, Callable[[Call], Awaitable[None]]] = {
    "ok": _ok,
    "large": _large,
    "drip": _drip,
    "surplus": _surplus,
    "closes": _closes,
    "early": _early,
    **{f"http_{status}": partial(_http, status=status) for status in (400, 404, 429, 500, 503)},
    "reset_before": _reset_before,
    "reset_in_upload": _reset_before,
    "reset_in_head": _reset_in_head,
    "reset_in_body": _reset_in_body,
    "short": _short,
    "no_http": _no_http,
    "endless_head": _endless_head,
    "bad_chunks": _bad_chunks,
    "bad_status": _bad_status,
    "silence": lambda _call: _never(),
    "hold": lambda _call: _never(),
    "unread": lambda _call: _never(),
    "silence_in_body": _silence_in_body,
    "endless_drip": _endless_drip,
    "no_json": lambda call: call.answer(f"<h1>{call.marker}</h1>".encode(), type="text/html"),
    "error_200": _error_200,
    "nan": _nan,
    "empty": lambda call: call.answer(b""),
    "stream": _stream,
    "long_stream": _long_stream,
    "flood": _flood,
    "endless_stream": _endless_stream,
    "hold_in_stream": _silence_in_stream,
    "reset_in_stream": _reset_in_stream,
    "bad_chunks_in_stream": _bad_chunks_in_stream,
    "silence_in_stream": _silence_in_stream,
    "error_in_stream": _error_in_stream,
}


class Stub:
    """Serves connections, and keeps the count."""

    def __init__(self) -> None:
        self.state = State()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.state.open_connections += 1
        try:
            while await self._request(reader, writer) and not writer.is_closing():
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.state.open_connections -= 1
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection can take another one."""
        head = await reader.readuntil(b"\r\n\r\n")
        left = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        peek = await reader.readexactly(min(left, PEEK_BYTES))
        left -= len(peek)
        orders = _ORDERS.search(peek)
        marker, fault, delay_ms = (text.decode() for text in orders.groups()) if orders else ("-", "ok", "0")
        crc = zlib.crc32(peek)
        if fault not in faults.UNREAD:
            while left:
                piece = await reader.readexactly(min(left, 1 << 16))
                left -= len(piece)
                crc = zlib.crc32(piece, crc)
        return await self._play(
            fault, Call(marker, int(delay_ms) / 1e3, crc, writer, self.state), reader, watches=not left
        )

    async def _play(self, fault: str, call: Call, reader: asyncio.StreamReader, *, watches: bool) -> bool:
        state = self.state
        call.begin()
        began = time.monotonic()
        playing = asyncio.ensure_future(BEHAVIOURS[fault](call))
        # A caller that waits for its answer sends nothing. One that has not been read to its end is not watched.
        leaving = asyncio.ensure_future(reader.read(1) if watches else _gone(call.writer))
        try:
            await asyncio.wait((playing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                return False
            playing.result()
            return watches
        finally:
            call.end()
            if fault.startswith("hold"):
                state.held += 1
                state.outlived += time.monotonic() - began > CALL_LIMIT_SECONDS - 0.1
            for task in (playing, leaving):
                task.cancel()
            await asyncio.gather(playing, leaving, return_exceptions=True)


async def _gone(writer: asyncio.StreamWriter) -> None:
    """Return when the other side has closed: seen by the socket itself, for nobody reads here."""
    inside: socket.socket | None = writer.get_extra_info("socket")
    while inside is not None and inside.fileno() >= 0:
        info = inside.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        if info[0] != 1:  # TCP_ESTABLISHED
            return
        await asyncio.sleep(0.05)


def cut(writer: asyncio.StreamWriter) -> None:
    """Close with a reset."""
    inside: socket.socket | None = writer.get_extra_info("socket")
    if inside is not None and inside.fileno() >= 0:
        inside.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _head(status: int, type: str, extra: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Type: {type}\r\n{extra}\r\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def main(port: int) -> None:
    """Serve on loopback until stdin ends; the port is the first line on stdout."""
    stub = Stub()
    server = await asyncio.start_server(stub.connection, "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line.strip() == "forget":
            stub.state.most_running = stub.state.running
        print(json.dumps(asdict(stub.state)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The upstream of the soak.")
    parser.add_argument("--port", type=int, default=0)
    uvloop.run(main(parser.parse_args().port))

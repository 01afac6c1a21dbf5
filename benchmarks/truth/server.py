"""A chat server of known truth that costs next to nothing: one process, no framework, every stamp its own.

    python -m benchmarks.truth.server [--ttft-ms 50] [--itl-ms 5] [--tokens 64] [...]

It prints its port, streams answers on absolute times and keeps, for each request, when the first byte came and when
the first and last token were written. A model called ``case:NAME`` plays the wire case of that name. GET /truth gives
what was kept, DELETE /truth forgets it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uvloop

CASES = Path(__file__).resolve().parents[2] / "tests" / "golden" / "wire_cases.json"
LINGER_SECONDS = 3.0
"""So long the connection of a case that goes on behind ``[DONE]`` stays open."""
WAIT_NS = 1_000_000
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ID = re.compile(rb"\r\nx-request-id: *([^\r]+)", re.IGNORECASE)
_CASE = re.compile(rb'"model":"case:([\w-]+)"')
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(slots=True)
class Kept:
    """One request. ``written_ns``: of a wire case, when each of its chunks was written."""

    request_id: str
    first_byte_ns: int
    last_byte_ns: int = 0
    first_token_ns: int | None = None
    last_token_ns: int | None = None
    tokens: int = 0
    outcome: str = "ok"
    written_ns: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Script:
    """What every answer is like, and the traps in it."""

    ttft_ms: float
    itl_ms: float
    tokens: int
    tokens_per_chunk: int
    slots: int
    stall_at: int
    stall_ms: float
    hiccup_at: float
    hiccup_s: float
    fail_every: int
    cut_every: int
    case_ms: float
    is_role_first: bool
    has_running_usage: bool


class World:
    """What all connections share."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.kept: list[Kept] = []
        self.connections = 0
        self.count = 0
        self.running = 0
        self.waiting: deque[Callable[[], None]] = deque()
        self.cases = {case["id"]: case for case in json.loads(CASES.read_text("utf-8"))["cases"]}
        usage: dict[str, object] = {"id": "chatcmpl-1", "choices": [], "usage": _usage(script.tokens)}
        self.tail = _event(_chunk("", finish="length")) + _event(usage) + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    def begin(self, start: Callable[[], None]) -> None:
        """Start now, or when a slot is free."""
        if self.count == 1 and self.script.hiccup_s:
            asyncio.get_running_loop().call_later(self.script.hiccup_at, time.sleep, self.script.hiccup_s)
        if self.running < self.script.slots:
            self.running += 1
            start()
        else:
            self.waiting.append(start)

    def end(self) -> None:
        """A slot is free."""
        if self.waiting:
            self.waiting.popleft()()
        else:
            self.running -= 1


class Connection(asyncio.Protocol):
    """Reads requests one after the other and answers each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._reset()

    def _reset(self) -> None:
        self._head = b""
        self._start = b""
        self._missing = -1
        self._first_byte_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # uvloop's is none of asyncio's
        self._world.connections += 1

    def data_received(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        self._first_byte_ns = self._first_byte_ns or now_ns
        if self._missing < 0:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head, data = self._head[: end + 4], self._head[end + 4 :]
            found = _LENGTH.search(self._head)
            self._missing = int(found[1]) if found else 0
        if len(self._start) < 512:
            self._start += data[:512]
        self._missing -= len(data)
        if self._missing <= 0:
            head, start, first_byte_ns = self._head, self._start, self._first_byte_ns
            self._reset()
            self._take(head, start, first_byte_ns, now_ns)

    def _take(self, head: bytes, start: bytes, first_byte_ns: int, last_byte_ns: int) -> None:
        world = self._world
        method, path, _ = head.split(b" ", 2)
        if method == b"POST":
            found = _ID.search(head)
            kept = Kept(found[1].decode() if found else "", first_byte_ns, last_byte_ns)
            world.kept.append(kept)
            world.count += 1
            case = _CASE.search(start)
            if case is not None:
                self._play(kept, world.cases[case[1].decode()])
            elif world.script.fail_every and world.count % world.script.fail_every == 0:
                kept.outcome = "http_error"
                self._whole(500, b'{"error":{"message":"declared failure"}}')
            else:
                is_cut = bool(world.script.cut_every) and world.count % world.script.cut_every == 0
                world.begin(Stream(world, self._transport, kept, is_cut=is_cut).start)
        elif path == b"/v1/models":
            models = [{"id": name} for name in ("qwen", *(f"case:{name}" for name in world.cases))]
            self._whole(200, json.dumps({"object": "list", "data": models}).encode())
        elif path == b"/health":
            self._whole(200, b"{}")
        elif path == b"/truth" and method == b"DELETE":
            world.kept.clear()
            world.connections = world.count = 0
            self._whole(200, b"{}")
        elif path == b"/truth":
            told = {"connections": world.connections, "requests": [asdict(one) for one in world.kept]}
            self._whole(200, json.dumps(told).encode())
        else:
            self._whole(404, b"{}")

    def _whole(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)

    def _play(self, kept: Kept, case: dict[str, Any]) -> None:
        """A wire case: its chunks, one write each, then the end; behind ``[DONE]`` the socket stays open."""
        chunks = [base64.b64decode(chunk) for chunk in case["chunks"]]
        gap_ms = self._world.script.case_ms if len(chunks) < 50 else 1.0
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        )
        stays_open = case["id"] == "after_done"

        def write(index: int) -> None:
            if self._transport.is_closing():  # the client has read enough
                return
            if index < len(chunks):
                kept.written_ns.append(time.monotonic_ns())
                self._transport.write(chunks[index])
                self._loop.call_later(gap_ms / 1e3, write, index + 1)
            elif stays_open:
                self._loop.call_later(LINGER_SECONDS, self._transport.close)
            else:
                self._transport.close()

        self._loop.call_later(gap_ms / 1e3, write, 0)


class Stream:
    """One answer: each event at an absolute time of its own, so that a late one makes none after it late."""

    def __init__(self, world: World, transport: asyncio.Transport, kept: Kept, *, is_cut: bool) -> None:
        self._world = world
        self._script = world.script
        self._transport = transport
        self._kept = kept
        self._is_cut = is_cut
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """A slot is there. Time counts from the first byte, or from the slot where that came later."""
        now_ns = time.monotonic_ns()
        has_waited = now_ns - self._kept.last_byte_ns > WAIT_NS
        spent_ns = 0 if has_waited else now_ns - self._kept.first_byte_ns
        self._base = self._loop.time() - spent_ns / 1e9
        if self._script.is_role_first and not self._transport.is_closing():
            self._transport.write(_HEAD + _event(_chunk("", role="assistant")))
        self._after(self._script.ttft_ms)

    def _after(self, milliseconds: float) -> None:
        self._loop.call_at(self._base + milliseconds / 1e3, self._step)

    def _step(self) -> None:
        script, kept = self._script, self._kept
        if self._transport.is_closing():
            kept.outcome = "abandoned"  # the client has gone
            self._world.end()
            return
        first = kept.tokens
        kept.tokens = min(first + script.tokens_per_chunk, script.tokens)
        chunk = _chunk("".join(f"t{number} " for number in range(first, kept.tokens)))
        data = _event(chunk | {"usage": _usage(kept.tokens)} if script.has_running_usage else chunk)
        if not first and not script.is_role_first:
            data = _HEAD + data
        kept.last_token_ns = time.monotonic_ns()
        kept.first_token_ns = kept.first_token_ns or kept.last_token_ns
        self._transport.write(data)
        if self._is_cut and kept.tokens > script.tokens / 2:
            kept.outcome = "truncated"
            self._transport.close()
            self._world.end()
        elif kept.tokens >= script.tokens:
            self._transport.write(self._world.tail)
            self._world.end()
        else:
            stall_ms = script.stall_ms if script.stall_at and kept.tokens >= script.stall_at else 0.0
            self._after(script.ttft_ms + script.itl_ms * kept.tokens + stall_ms)


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 128, "completion_tokens": tokens, "total_tokens": 128 + tokens}


def _chunk(text: str, *, role: str | None = None, finish: str | None = None) -> dict[str, object]:
    delta = {"content": text} | ({"role": role} if role else {})
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "qwen",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }


def _event(body: dict[str, object]) -> bytes:
    return _chunked(b"data: " + json.dumps(body).encode() + b"\n\n")


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def serve(script: Script) -> None:
    """Until the process is ended."""
    world = World(script)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(world), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Read the script from the command line and serve."""
    parser = argparse.ArgumentParser(description="A chat server of known truth.")
    for name, default in (("ttft-ms", 50.0), ("itl-ms", 5.0), ("stall-ms", 0.0), ("hiccup-at", 0.0), ("hiccup-s", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    for name, number in (("tokens", 64), ("tokens-per-chunk", 1), ("slots", 100_000), ("stall-at", 0)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--fail-every", type=int, default=0, help="Every so many requests get a 500.")
    parser.add_argument("--cut-every", type=int, default=0, help="Every so many streams end in the middle.")
    parser.add_argument("--case-ms", type=float, default=40.0, help="Between the chunks of a wire case.")
    parser.add_argument("--role-first", dest="is_role_first", action="store_true", help="The role's event at once.")
    parser.add_argument("--running-usage", dest="has_running_usage", action="store_true", help="Usage in every event.")
    uvloop.run(serve(Script(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()

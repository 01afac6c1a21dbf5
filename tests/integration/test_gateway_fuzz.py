"""Bytes that no client would send, and bytes cut and pipelined as no client would: over real sockets.

Whatever comes, the gateway never fails by itself, never hangs, never gives an answer to another request, lets nothing
through that was hidden in a body, holds nothing afterwards, and serves the next caller.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop
from benchmarks.soak.caller import Answer, read_answer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.integration.gateway_rig import Rig, gateway, until
from tests.integration.stub_upstream import StubRequest, StubUpstream, response, stub_upstream

HIDDEN = b'{"marker":"hidden"}'
SMUGGLED = b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(HIDDEN), HIDDEN)


async def echo(request: StubRequest, writer: asyncio.StreamWriter) -> None:
    """The body comes back as it was: an answer is its own request's when it equals what was sent."""
    writer.write(response(request.body))
    await writer.drain()


@dataclass
class Fuzzed:
    """A gateway that lives through a whole module, in a loop of its own."""

    runner: asyncio.Runner
    stub: StubUpstream
    rig: Rig
    errors: list[str] = field(default_factory=list)

    def run(self, scenario: Any) -> None:
        """Run one example; then nothing is held, nothing was logged as a failure, and a plain call goes through."""
        self.stub.requests.clear()
        self.runner.run(asyncio.wait_for(self._whole(scenario), 60))

    async def _whole(self, scenario: Any) -> None:
        await scenario
        state = self.rig.app.state
        await until(
            lambda: (
                (self.rig.admission.in_use, self.rig.admission.waiting) == (0, 0)
                and (state.buffer.held_bytes, state.buffer.waiting, state.metrics.in_progress) == (0, 0, 0)
            )
        )
        assert self.errors == []
        reader, writer = await asyncio.open_connection("127.0.0.1", self.rig.port)
        writer.write(Sent("healthy", b"/chat", b'{"marker":"healthy"}').raw)
        Sent("healthy", b"/chat", b'{"marker":"healthy"}').check(await read_answer(reader))
        writer.close()


class _Errors(logging.Handler):
    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        # uvicorn's word for a transfer that was broken on purpose, or for a caller that has just left.
        if "without completing response" not in record.getMessage():
            self._found.append(record.getMessage())


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Fuzzed]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        stub = runner.run(stack.enter_async_context(stub_upstream(echo)))
        limits = {"gateway_max_body_bytes": 200_000, "gateway_buffer_bytes": 2_000_000, "max_batch_items": 8}
        rig = runner.run(stack.enter_async_context(gateway(stub, **limits)))
        one = Fuzzed(runner, stub, rig)
        handler = _Errors(one.errors)
        names = ("vision_bench", "uvicorn.error", "asyncio")
        for name in names:
            logging.getLogger(name).addHandler(handler)
        try:
            yield one
        finally:
            for name in names:
                logging.getLogger(name).removeHandler(handler)
            runner.run(stack.aclose())


@dataclass(frozen=True)
class Sent:
    """One proper request, and what its answer must be."""

    marker: str
    path: bytes
    body: bytes = b""
    chunks: tuple[int, ...] | None = None
    """Sizes of the chunks in which the body is sent, round and round; None: with its length."""
    method: bytes = b"POST"
    extra: tuple[bytes, ...] = ()

    @property
    def raw(self) -> bytes:
        lines = [self.method + b" " + self.path + b" HTTP/1.1", b"Host: x", b"X-Request-Id: " + self.marker.encode()]
        lines += self.extra
        if self.method == b"GET":
            return b"\r\n".join([*lines, b"", b""])
        if self.chunks is None:
            return b"\r\n".join([*lines, b"Content-Length: %d" % len(self.body), b"", self.body])
        pieces, at, turn = [b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b""])], 0, 0
        while at < len(self.body):
            piece = self.body[at : at + self.chunks[turn % len(self.chunks)]]
            # An extension now and then: allowed, and to be ignored.
            pieces.append(b"%x%s\r\n%s\r\n" % (len(piece), b";a=b" if turn % 3 == 1 else b"", piece))
            at, turn = at + len(piece), turn + 1
        return b"".join([*pieces, b"0\r\n", b"Trailer-Of: x\r\n" if turn % 2 else b"", b"\r\n"])

    def check(self, answer: Answer) -> None:
        assert answer.is_whole
        assert answer.headers["x-request-id"] == self.marker
        if self.method == b"GET":
            assert (answer.status, answer.body) == (200, b'{"ok":true}')
        elif self.path == b"/nope":
            assert answer.status == 404
        elif self.path == b"/healthz":
            assert answer.status == 405
        elif self.path == b"/chat/batch":
            assert answer.status == 200
            wanted = {item["id"]: item["body"] for item in json.loads(self.body)["items"]}
            lines = [json.loads(line) for line in answer.body.splitlines()]
            assert {line["id"]: line["body"] for line in lines} == wanted
            assert len(lines) == len(wanted)
        else:
            assert (answer.status, answer.body) == (200, self.body)


_CHUNKS = st.none() | st.lists(st.sampled_from([1, 2, 7, 100, 5000]), min_size=1, max_size=3).map(tuple)
_EXTRAS = st.sampled_from(
    [(), (b"Expect: nothing",), (b"Connection: keep-alive",), (b"X-Long: " + b"y" * 3000,), (b"Upgrade: h2c",)]
)


_PATHS = [b"/chat", b"/chat", b"/v1/chat/completions", b"/chat/batch", b"/nope", b"/healthz"]


@st.composite
def requests(draw: st.DrawFn) -> list[Sent]:
    """Up to six proper requests for one connection; bodies hold what looks like requests."""
    found = []
    for number in range(draw(st.integers(1, 6))):
        marker = f"m{number}-{draw(st.integers(0, 999))}"
        path = draw(st.sampled_from(_PATHS))
        filling = draw(st.sampled_from(["", "x" * 50, "x" * 20_000, SMUGGLED.decode(), "\r\n\r\n0\r\n\r\n"]))
        body = json.dumps({"marker": marker, "filling": filling}).encode()
        if path == b"/chat/batch":
            count = draw(st.integers(0, 4))
            items = ({"id": f"{marker}.{n}", "body": {"marker": f"{marker}.{n}", "f": filling}} for n in range(count))
            body = json.dumps({"items": list(items)}).encode()
        elif path == b"/chat" and draw(st.booleans()):
            # Not JSON: the gateway passes on whatever it is. This one is a request inside a request.
            body = b"%s %s" % (marker.encode(), SMUGGLED * draw(st.integers(0, 3)))
        method = b"GET" if path == b"/healthz" and draw(st.booleans()) else b"POST"
        found.append(Sent(marker, path, body, draw(_CHUNKS), method, draw(_EXTRAS)))
    return found


_CUTS = st.lists(st.integers(0, 60_000), max_size=12)


async def send_cut(writer: asyncio.StreamWriter, data: bytes, cuts: list[int]) -> None:
    """Send ``data`` in pieces, each of which arrives by itself."""
    at = 0
    for cut in [*sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]:
        if writer.is_closing():  # uvloop would say so with a RuntimeError
            raise ConnectionResetError
        writer.write(data[at:cut])
        await writer.drain()
        await asyncio.sleep(0.001)
        at = cut


async def converse(fuzzed: Fuzzed, sent: list[Sent], cuts: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", fuzzed.rig.port)
    sending = asyncio.ensure_future(send_cut(writer, b"".join(one.raw for one in sent), cuts))
    try:
        for one in sent:
            one.check(await read_answer(reader))
        await sending
    finally:
        sending.cancel()
        writer.transport.abort()


@settings(max_examples=60)
@given(st.lists(st.tuples(requests(), _CUTS), min_size=1, max_size=3))
def test_every_pipelined_request_gets_its_own_answer(
    fuzzed: Fuzzed, connections: list[tuple[list[Sent], list[int]]]
) -> None:
    """Up to three connections at once, up to six requests on each, with lengths and in chunks, cut anywhere: answers
    come in order, each with its request's id and bytes; what looks like a request in a body stays a body."""

    async def scenario() -> None:
        await asyncio.gather(*(converse(fuzzed, sent, cuts) for sent, cuts in connections))
        assert all(request.body != HIDDEN for request in fuzzed.stub.requests)

    fuzzed.run(scenario())


def _post(lines: bytes, body: bytes) -> bytes:
    return b"POST /chat HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n\r\n" + body


BAD_FRAMINGS = [
    # Two lengths, or a length and chunks: whoever reads one of them sees a second request in the body.
    _post(b"Content-Length: 4\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + SMUGGLED),
    _post(b"Transfer-Encoding: chunked\r\nContent-Length: 4", b"0\r\n\r\n" + SMUGGLED),
    _post(b"Content-Length: 0\r\nContent-Length: %d" % len(SMUGGLED), SMUGGLED),
    _post(b"Content-Length: %d\r\nContent-Length: 0" % len(SMUGGLED), SMUGGLED),
    _post(b"Content-Length: 0, 5", SMUGGLED),
    _post(b"Content-Length: +0", SMUGGLED),
    _post(b"Content-Length: -1", SMUGGLED),
    _post(b"Content-Length: 0x10", SMUGGLED),
    _post(b"Content-Length: 1_0", SMUGGLED),
    _post(b"Content-Length: 18446744073709551616", SMUGGLED),
    _post(b"Content-Length:", SMUGGLED),
    _post(b"Content-Length : 0", SMUGGLED),
    _post(b"Transfer-Encoding: chunked, identity", b"0\r\n\r\n" + SMUGGLED),
    _post(b"Transfer-Encoding: xchunked", b"0\r\n\r\n" + SMUGGLED),
    _post(b"Transfer-Encoding: identity", SMUGGLED),
    _post(b"Transfer-Encoding:\x0bchunked", b"0\r\n\r\n" + SMUGGLED),
    _post(b"Transfer-Encoding: chunked", b"zz\r\n" + SMUGGLED),
    _post(b"Transfer-Encoding: chunked", b"-1\r\n" + SMUGGLED),
    _post(b"Transfer-Encoding: chunked", b"FFFFFFFFFFFFFFFFF\r\n" + SMUGGLED),
    _post(b"Transfer-Encoding: chunked", b"3\r\nabcd\r\n0\r\n\r\n" + SMUGGLED),
    _post(b"Transfer-Encoding: chunked", b"1\nx\n0\n\n" + SMUGGLED),
    _post(b"Transfer-Encoding: chunked", b"0\r\nA: b\nC\r\n\r\n" + SMUGGLED),
    _post(b"X: a\r\n Content-Length: 0", SMUGGLED),
    b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n" + SMUGGLED,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SMUGGLED,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SMUGGLED,
    b"GET /healthz\r\n" + SMUGGLED,
]


@pytest.mark.parametrize("bad", BAD_FRAMINGS, ids=lambda bad: repr(bytes(bad)[33:70]))
@pytest.mark.parametrize("before", [0, 2])
def test_a_request_of_two_readings_ends_the_connection(fuzzed: Fuzzed, bad: bytes, before: int) -> None:
    """Requests before it get their answers; it gets a 400 or none; what it hides never reaches vLLM."""
    sent = [Sent(f"m{n}", b"/chat", b"body %d" % n) for n in range(before)]

    async def scenario() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", fuzzed.rig.port)
        writer.write(b"".join(one.raw for one in sent) + bad)
        for one in sent:
            one.check(await read_answer(reader))
        rest = await asyncio.wait_for(reader.read(), 10)
        assert rest.startswith(b"HTTP/1.1 4") or not rest
        assert rest.count(b"HTTP/1.1 ") <= 1
        writer.close()
        assert len(fuzzed.stub.requests) == before

    fuzzed.run(scenario())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Proper requests with something cut out, put in, doubled or turned over."""
    data = bytearray(b"".join(one.raw for one in draw(requests()))[:30_000])
    for _ in range(draw(st.integers(1, 5))):
        if not data:
            break
        # Mostly near the front: that is where the heads are.
        at = draw(st.integers(0, min(len(data) - 1, draw(st.sampled_from([60, 400, 30_000])))))
        match draw(st.sampled_from(["cut", "put", "double", "turn"])):
            case "cut":
                del data[at : at + draw(st.integers(1, 40))]
            case "put":
                data[at:at] = draw(st.sampled_from(_WORDS) | st.binary(min_size=1, max_size=8))
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 60))]
            case _:
                data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


_WORDS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"\r\n\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"HTTP/1.0", b"0\r\n\r\n", b"%00", b"//", b"?", b"[", b'"',
]  # fmt: skip


@settings(max_examples=150)
@given(st.binary(max_size=400) | mutated(), _CUTS)
@example(b"", [])
@example(b"\r\n" * 1000, [])
@example(b"GET http://[ HTTP/1.1\r\n\r\n", [])
def test_no_bytes_make_the_gateway_fail(fuzzed: Fuzzed, data: bytes, cuts: list[int]) -> None:
    """Random bytes and damaged requests: every answer that comes is HTTP and none of them a 500; then the caller
    leaves, wherever it is, and the gateway is as before."""

    async def scenario() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", fuzzed.rig.port)
        try:
            await send_cut(writer, data, cuts)
            while True:
                # Half a request has no answer: that the gateway does not wait for it for ever is another test's fact.
                answer = await asyncio.wait_for(read_answer(reader), 0.05)
                assert answer.status in {100, 200, 400, 404, 405, 408, 413, 431}
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    fuzzed.run(scenario())

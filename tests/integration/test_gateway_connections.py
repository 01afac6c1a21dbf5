"""What a caller can do to a connection: garbage, drips, endless heads, pipelines, answers that nobody reads."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.integration.gateway_rig import BODY, Rig, gateway, until
from tests.integration.stub_upstream import answers, stub_upstream

from vision_bench.gateway.protocol import MAX_QUEUED_REQUESTS

CHAT = json.dumps(BODY).encode()
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def post(body: bytes = CHAT, *lines: bytes, length: bytes | None = None) -> bytes:
    """A POST to /chat."""
    size = str(len(body)).encode() if length is None else length
    head = [b"POST /chat HTTP/1.1", b"Host: x", *lines, b"Content-Length: " + size]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def chunked(*lines: bytes) -> bytes:
    return b"\r\n".join([b"POST /chat HTTP/1.1", b"Host: x", *lines, b"Transfer-Encoding: chunked"]) + b"\r\n\r\n"


@asynccontextmanager
async def connection(rig: Rig) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1 << 26)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def talk(rig: Rig, *pieces: bytes, gap_seconds: float = 0.0) -> bytes:
    """Everything that comes back until the gateway closes the connection."""
    async with connection(rig) as (reader, writer):

        async def send() -> None:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(gap_seconds)

        sending = asyncio.create_task(send())
        try:
            async with asyncio.timeout(10):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


def error_of(answer: bytes) -> tuple[int, str]:
    """Status and type of the one answer, which must be ours in every respect."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1, answer
    assert b"connection: close" in head.lower()
    assert b"x-request-id: " in head.lower()
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == int(head.split()[1])
    return error["code"], error["type"]


MALFORMED = {
    "length and chunks": b"POST /chat HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": b"POST /chat HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": post(b"abc", b"Content-Length: 3"),
    "two other lengths": post(b"abc", b"Content-Length: 4"),
    "length list": post(b"abc", length=b"3, 3"),
    "negative length": post(b"abc", length=b"-3"),
    "signed length": post(b"abc", length=b"+3"),
    "hex length": post(b"abc", length=b"0x3"),
    "empty length": post(b"abc", length=b""),
    "endless length": post(b"abc", length=b"9" * 40),
    "blank before the colon": post(b"abc", b"X-A : 1"),
    "folded header": post(b"abc", b"X-A: 1\r\n 2"),
    "folded coding": b"POST /chat HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "gzip": b"POST /chat HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nabc",
    "gzip in chunks": b"POST /chat HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": chunked(b"Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "chunks in 1.0": b"POST /chat HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad chunk size": chunked() + b"zz\r\nabc\r\n",
    "negative chunk size": chunked() + b"-1\r\nabc\r\n",
    "endless chunk size": chunked() + b"f" * 30 + b"\r\n",
    "chunk longer than it says": chunked() + b"3\r\nabcdef\r\n0\r\n\r\n",
    "NUL in a header": post(b"abc", b"X-A: a\x00b"),
    "bare CR in a header": post(b"abc", b"X-A: a\rb"),
    "bare LF": b"GET /healthz HTTP/1.1\nHost: x\n\n",
    "no header name": post(b"abc", b": x"),
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/9.9": b"GET /healthz HTTP/9.9\r\n\r\n",
    "HTTP/2.0": b"GET /healthz HTTP/2.0\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    "CONNECT": b"CONNECT vllm:8000 HTTP/1.1\r\nHost: vllm:8000\r\n\r\n",
    "small letters": b"get /healthz HTTP/1.1\r\n\r\n",
    "no path": b"GET healthz HTTP/1.1\r\n\r\n",
    "letters that are not ASCII": "GET /안녕 HTTP/1.1\r\n\r\n".encode(),
    "blank in the path": b"GET /a b HTTP/1.1\r\n\r\n",
    "host without path": b"GET http:// HTTP/1.1\r\n\r\n",
}


async def test_what_is_no_http_is_refused_in_our_shape() -> None:
    """Each is one 400 and a closed connection, however the bytes were cut; vLLM never hears of it."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        for name, raw in MALFORMED.items():
            for pieces in ([raw], [raw[:20], raw[20:]], [raw[:-5], raw[-5:]]):
                got = error_of(await talk(rig, *pieces, gap_seconds=0.002 if len(pieces) > 1 else 0))
                assert got == (400, "invalid_request"), name
        assert (await rig.client.get("/healthz")).status_code == 200
        await until(lambda: rig.admission.in_use == 0 and rig.app.state.buffer.held_bytes == 0)
    assert not stub.requests


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET http://elsewhere/healthz HTTP/1.1\r\nHost: x\r\n", 200),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n", 404),
        (b"GET /%zz%f%00 HTTP/1.1\r\nHost: x\r\n", 404),
        (b"GET /%ff%fe HTTP/1.1\r\nHost: x\r\n", 404),
        (b"GET /healthz#x HTTP/1.1\r\nHost: x\r\n", 200),
        (b"GET //elsewhere/healthz HTTP/1.1\r\nHost: x\r\n", 404),
        (b"GET /healthz HTTP/1.1\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\n", 200),
        (b"GET /docs/ HTTP/1.1\r\nHost: [\r\n", 404),
        (b"GET /healthz/ HTTP/1.1\r\nHost: \xff\xfe\r\n", 404),
        (b"BREW /chat HTTP/1.1\r\nHost: x\r\n", 400),
        (b"TRACE /chat HTTP/1.1\r\nHost: x\r\n", 405),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n", 200),
        (b"GET /live/push/x HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n", 400),
    ],
)
async def test_odd_requests_have_an_ordinary_answer(raw: bytes, status: int) -> None:
    """No 500 of ours, no silence."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        answer = await talk(rig, raw + b"Connection: close\r\n\r\n" if b"Upgrade" not in raw else raw + b"\r\n" + CLOSE)
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer


CLOSE = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
async def test_an_upgrade_is_ignored_and_its_body_read_as_a_body(protocol: bytes) -> None:
    """A client that offers h2c, as Java's does, is served in HTTP/1.1; what looks like a request in its body stays
    body, in one piece or in many. So is a WebSocket where there is none."""
    body = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    offer = (
        b"Upgrade: " + protocol,
        b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
        b"Connection: Upgrade, HTTP2-Settings",
    )
    raw = post(body, *offer)
    async with stub_upstream() as stub, gateway(stub) as rig:
        for pieces in ([raw + CLOSE], [raw[:-10], raw[-10:], CLOSE], [raw[:40], raw[40:-20], raw[-20:] + CLOSE]):
            answer = await talk(rig, *pieces, gap_seconds=0.005)
            assert answer.count(b"HTTP/1.1 200 ") == 2
            assert answer.endswith(b'{"ok":true}')
    assert [request.body for request in stub.requests] == [body] * 3


def endless(begin: bytes, more: bytes) -> list[bytes]:
    return [begin, *[more * (8192 // len(more))] * 200]


@pytest.mark.parametrize(
    "pieces",
    [
        endless(b"GET /" + b"x", b"x"),
        endless(b"GET /healthz HTTP/1.1\r\nX-Long: ", b"x"),
        endless(b"GET /healthz HTTP/1.1\r\nX-", b"x"),
        endless(b"GET /healthz HTTP/1.1\r\n", b"X-A: 12345678\r\n"),
        endless(b"", b"\r\n"),
        [b"GET /healthz HTTP/1.1\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n"],
        [b"GET /healthz?" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n"],
        endless(chunked() + b"3;", b"x"),
        endless(chunked() + b"3\r\nabc\r\n0\r\nX-Long: ", b"x"),
        endless(chunked() + b"3\r\nabc\r\n0\r\n", b"X-A: 12345678\r\n"),
    ],
    ids=[
        "target",
        "header",
        "name",
        "headers",
        "blank lines",
        "one piece",
        "query in one piece",
        "chunk extension",
        "trailer",
        "trailers",
    ],
)
async def test_a_head_without_end_is_431(pieces: list[bytes]) -> None:
    """Refused near the limit, far from the 1.6 MB that the caller would send."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        assert error_of(await talk(rig, *pieces)) == (431, "headers_too_large")
        await until(lambda: rig.app.state.buffer.held_bytes == 0)
    assert not stub.requests


async def test_a_head_within_the_limit_is_served() -> None:
    """60 kB of headers pass, the limit being 64 KiB, and so does a body of very small chunks."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        big = await rig.client.get("/healthz", headers={f"x-{n}": "x" * 6000 for n in range(10)})
        assert big.status_code == 200
        answer = await talk(rig, chunked(b"Connection: close") + b"1;a=b\r\nx\r\n" * 30_000 + b"0\r\nX-T: 1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")
    assert stub.requests[0].body == b"x" * 30_000


async def test_trailers_are_no_headers() -> None:
    """What follows the last chunk changes nothing of the request that runs: no Authorization, no content type."""
    raw = chunked(b"Connection: close") + b"2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\nContent-Type: text/evil\r\n\r\n"
    async with stub_upstream() as stub, gateway(stub) as rig:
        assert (await talk(rig, raw)).startswith(b"HTTP/1.1 200 ")
    assert "authorization" not in stub.requests[0].headers
    assert stub.requests[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"\r\n"] * 100,
        [bytes([letter]) for letter in b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"x" * 100],
        [HEALTHZ],
        [HEALTHZ] + [bytes([letter]) for letter in b"POST /chat HTTP/1.1\r\nX-Slow: " + b"x" * 100],
        [b"POST /healthz HTTP/1.1\r\nContent-Length: 500\r\n\r\n", *[b"x"] * 300],
    ],
    ids=["nothing", "blank lines", "a head in drips", "idle after an answer", "drips after an answer", "unread body"],
)
async def test_a_connection_without_a_request_is_closed(pieces: list[bytes]) -> None:
    """After GATEWAY_IDLE_SECONDS, however the caller keeps the line warm."""
    async with stub_upstream() as stub, gateway(stub, gateway_idle_seconds=0.4) as rig:
        began = asyncio.get_running_loop().time()
        await talk(rig, *pieces, gap_seconds=0.02)
        lasted_seconds = asyncio.get_running_loop().time() - began
        assert 0.3 < lasted_seconds < 3
        await until(lambda: len(rig.server.server_state.connections) == 0)


async def test_a_request_that_runs_is_not_idle() -> None:
    """A call that takes longer than GATEWAY_IDLE_SECONDS is answered, and the connection used again."""
    async with (
        stub_upstream(answers(delay_seconds=0.6)) as stub,
        gateway(stub, gateway_idle_seconds=0.2) as rig,
        connection(rig) as (reader, writer),
    ):
        for _ in range(2):
            writer.write(post())
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    """Thirty at once: each its own answer, in turn."""
    async with stub_upstream() as stub, gateway(stub) as rig:

        async def echo(request: Any, writer: asyncio.StreamWriter) -> None:
            await answers(b'{"echo": %s}' % request.body)(request, writer)

        stub.behaviour = echo
        bodies = [b'{"n": %d}' % number for number in range(30)]
        answer = await talk(rig, b"".join(post(body) for body in bodies) + CLOSE)
        assert answer.count(b"HTTP/1.1 200 ") == 31
        places = [answer.index(b'{"echo": %s}' % body) for body in bodies]
        assert places == sorted(places)


async def test_a_caller_who_leaves_takes_its_pipeline_along() -> None:
    """Three calls on one connection, which is cut: the one that runs is closed at vLLM, the others are never sent.

    uvicorn by itself tells the last request only.
    """
    async with stub_upstream(answers(delay_seconds=30)) as stub, gateway(stub) as rig:
        async with connection(rig) as (_, writer):
            writer.write(post() * 3)
            await until(lambda: stub.running == 1)
            await asyncio.sleep(0.1)  # past the moment from which on a call is watched
        await until(lambda: stub.running == 0 and stub.open_connections == 0, within_seconds=2)
        await until(lambda: rig.admission.in_use == 0 and rig.app.state.buffer.held_bytes == 0)
    assert len(stub.requests) == 1


async def test_too_long_a_pipeline_ends_after_what_was_taken() -> None:
    """A thousand requests in one go: those that were read are answered, then the connection closes, and nothing is
    held for the rest."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        answer = await talk(rig, HEALTHZ * 1000)
        assert answer.count(b"HTTP/1.1 200 ") == MAX_QUEUED_REQUESTS + 1
        assert b"HTTP/1.1 4" not in answer


@pytest.mark.parametrize("garbage", [b"\x00\x01 nonsense\r\n\r\n", chunked() + b"zz\r\n", b"GET / HTTP/3\r\n\r\n"])
async def test_garbage_behind_a_request_does_not_spoil_its_answer(garbage: bytes) -> None:
    """The answer of the request that runs comes whole and is the last; the garbage has none of its own."""
    async with stub_upstream(answers(delay_seconds=0.2)) as stub, gateway(stub) as rig:
        answer = await talk(rig, post() + post() + garbage)
        assert answer.count(b"HTTP/1.1 200 ") == 2
        assert answer.count(b"HTTP/1.1 ") == 2
        assert answer.endswith(b"}")
    assert len(stub.requests) == 2


async def test_garbage_in_a_body_that_was_answered_already_has_no_second_answer() -> None:
    """A refused upload that turns into garbage: one answer, then the end."""
    async with stub_upstream() as stub, gateway(stub, gateway_max_body_bytes=10) as rig:
        answer = await talk(rig, chunked() + b"40\r\n" + b"x" * 64 + b"\r\n", b"zz\r\n", gap_seconds=0.05)
        assert error_of(answer) == (413, "too_large")


async def test_an_answer_that_nobody_reads_does_not_hold_anything() -> None:
    """A stream of megabytes to a caller that takes none: cut after GATEWAY_IDLE_SECONDS, call, permit and room free."""

    async def endless_stream(_request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()

    async with stub_upstream(endless_stream) as stub, gateway(stub, gateway_idle_seconds=0.5) as rig:
        with socket.create_connection(("127.0.0.1", rig.port)) as deaf:
            deaf.sendall(post())
            await until(lambda: stub.running == 1)
            await until(lambda: stub.running == 0 and rig.admission.in_use == 0)
            await until(lambda: rig.app.state.buffer.held_bytes == 0)
            await until(lambda: len(rig.server.server_state.connections) == 0)


async def test_a_refused_caller_that_asked_first_is_not_told_to_go_on() -> None:
    """Expect: 100-continue, and a request that is refused on its head: no 100, one answer."""
    settings = {"gateway_max_body_bytes": 10, "gateway_api_keys": "k"}
    async with stub_upstream() as stub, gateway(stub, **settings) as rig:
        for lines, status in (([b"Authorization: Bearer k"], 413), ([], 401)):
            async with connection(rig) as (reader, writer):
                writer.write(post(b"", b"Expect: 100-continue", *lines, length=b"11"))
                assert (await reader.readline()).startswith(b"HTTP/1.1 %d " % status)
        accepted = post(b"", b"Expect: 100-continue", b"Authorization: Bearer k", b"Connection: close", length=b"2")
        answer = await talk(rig, accepted, b"{}", gap_seconds=0.05)
        assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")


async def test_a_long_head_is_431_over_plain_uvicorn_too() -> None:
    """Without our protocol the head is held first, and then refused by the application, whatever the route."""
    async with stub_upstream() as stub, gateway(stub, http="auto") as rig:
        for path in ("/chat", "/healthz", "/nope"):
            answer = await rig.client.post(path, content=CHAT, headers={"x-long": "x" * 70_000})
            assert (answer.status_code, answer.json()["error"]["type"]) == (431, "headers_too_large")
        assert (await rig.client.post("/chat", content=CHAT, headers={"x-long": "x" * 60_000})).status_code == 200
    assert len(stub.requests) == 1


@pytest.mark.parametrize("idle_seconds", [0.5, 32_768, 1e10, 1e300])
async def test_any_number_of_idle_seconds_can_be_set(idle_seconds: float) -> None:
    """Linux takes no more than 32,767 s before its first probe, and no connection may fail of it."""
    async with stub_upstream() as stub, gateway(stub, gateway_idle_seconds=idle_seconds) as rig:
        assert (await rig.client.get("/healthz", timeout=5)).status_code == 200

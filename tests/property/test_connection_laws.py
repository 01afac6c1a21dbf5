"""What a connection reads does not depend on how its bytes were cut, and no bytes break it."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.jumping_clock import run
from tests.remembering_transport import Remembering
from uvicorn.config import Config
from uvicorn.server import ServerState

from vision_bench.gateway.protocol import GuardedProtocol

BODIES = st.one_of(st.binary(max_size=30), st.sampled_from([b"GET /inner HTTP/1.1\r\n\r\n", b"0\r\n\r\n", b"\r\n"]))


def plain(body: bytes) -> bytes:
    return b"POST /x HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def upgrading(body: bytes) -> bytes:
    return b"POST /x HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


def in_chunks(body: bytes) -> bytes:
    pieces = b"".join(b"1;a=b\r\n%c\r\n" % letter for letter in body)
    return b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\nX-Trailer: 1\r\n\r\n" % pieces


REQUESTS = st.lists(st.tuples(st.sampled_from([plain, upgrading, in_chunks]), BODIES), max_size=6)
CUTS = st.lists(st.integers(0, 2000), max_size=12)


async def echo(_scope: Any, receive: Any, send: Any) -> None:
    """The body, in hexadecimal."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        if not message["more_body"]:
            break
    answer = b"<" + body.hex().encode() + b">"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]})
    await send({"type": "http.response.body", "body": answer})


def fed(raw: bytes, cuts: Sequence[int]) -> Remembering:
    """The transport, after the bytes have come in these pieces and everything that runs has had its time."""
    transport = Remembering()

    async def main() -> None:
        config = Config(echo, log_config=None, lifespan="off", ws="none")
        protocol = GuardedProtocol(config, ServerState(), {})
        transport.protocol = protocol
        protocol.connection_made(transport)
        edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
        for begin, end in itertools.pairwise(edges):
            if begin < end and not transport.is_closing():
                protocol.data_received(raw[begin:end])
                await asyncio.sleep(0)
        await asyncio.sleep(1)
        if not transport.is_closing():
            transport.close()
        await asyncio.sleep(1)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        assert not {task for task in rest if "run_asgi" in repr(task)}, "a request that still waits"

    run(main())
    return transport


@given(requests=REQUESTS, cuts=CUTS)
def test_pipelined_requests_do_not_depend_on_the_cuts(requests: list[Any], cuts: list[int]) -> None:
    """Each body is one answer, in the order of asking: with a length, in chunks, behind an Upgrade; nothing in a body
    is ever a request."""
    transport = fed(b"".join(shape(body) for shape, body in requests), cuts)
    assert re.findall(rb"<([0-9a-f]*)>", transport.written) == [body.hex().encode() for _, body in requests]
    assert transport.written.count(b"HTTP/1.1 ") == len(requests)


@given(
    requests=REQUESTS, cuts=CUTS, changes=st.lists(st.tuples(st.integers(0, 800), st.binary(max_size=3)), max_size=4)
)
def test_no_bytes_break_a_connection(requests: list[Any], cuts: list[int], changes: list[tuple[int, bytes]]) -> None:
    """Spoilt at random: no error escapes, nothing is left running, nothing but 200 and 4xx is said, a refusal is the
    last word."""
    raw = bytearray(b"".join(shape(body) for shape, body in requests))
    for at, new in changes:
        raw[at : at + len(new)] = new
    transport = fed(bytes(raw), cuts)
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", transport.written)]
    assert set(statuses) <= {200, 400, 431}
    assert all(status == 200 for status in statuses[:-1])

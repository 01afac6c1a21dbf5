"""One connection, fed by hand: what is stamped, when an answer is over, and when the connection may be used again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from vision_bench.bench.chat.connection import HEAD_LIMIT_BYTES, Connection

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nServer-Timing: queue;dur=1\r\n\r\n"


class Wire:
    """Stands in for a transport."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.unsent_bytes = 0
        self.is_aborted = False

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0

    def write(self, data: bytes | memoryview) -> None:
        self.sent.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


class Reader:
    """Keeps what it is told; finished when a piece says so."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.stamps: list[int] = []
        self.is_finished = False

    def head(self, status: int, headers: dict[str, str], now_ns: int) -> None:
        self.status, self.headers = status, headers
        self.stamps.append(now_ns)

    def body(self, data: bytes, now_ns: int) -> None:
        self.pieces.append(data)
        self.stamps.append(now_ns)
        self.is_finished = b"[DONE]" in data


async def asked(
    *, body: tuple[bytes | memoryview, ...] = (b"body",), unsent_bytes: int = 0
) -> tuple[Connection, Wire, Reader, asyncio.Task[Any]]:
    """A connection that waits for its answer."""
    connection, wire, reader = Connection(), Wire(), Reader()
    connection.connection_made(wire)  # type: ignore[arg-type]
    wire.unsent_bytes = unsent_bytes
    task = asyncio.create_task(connection.exchange(b"HEAD\r\n\r\n", body, reader))
    await asyncio.sleep(0)
    return connection, wire, reader, task


async def test_an_answer_of_known_length() -> None:
    """Stamps rise, head and small body leave in one write, and the connection may be used again."""
    connection, wire, reader, task = await asked()
    assert wire.sent == [b"HEAD\r\n\r\nbody"]
    connection.data_received(OK[:20])
    connection.data_received(OK[20:] + b"h")
    connection.data_received(b"i")
    await task
    assert (reader.status, b"".join(reader.pieces), connection.response_bytes) == (200, b"hi", len(OK) + 2)
    stamps = [connection.hdr_ns, connection.bod_ns, *reader.stamps, connection.end_ns]
    assert stamps == sorted(stamps) and stamps[0] > 0
    assert connection.can_be_reused


async def test_the_wait_ends_when_the_reader_has_enough() -> None:
    """[DONE] ends it; what follows is not handed on, and the rest tells when the connection is free."""
    connection, _, reader, task = await asked()
    connection.data_received(CHUNKED + b"6\r\n[DONE]\r\n")
    await task
    over: list[bool] = []
    connection.on_rest = lambda: over.append(connection.can_be_reused)
    assert (reader.headers["server-timing"], connection.can_be_reused) == ("queue;dur=1", False)
    connection.data_received(b"4\r\nmore\r\n")
    connection.data_received(b"0\r\n\r\n")
    assert (over, reader.pieces) == ([True], [b"[DONE]"])


async def test_a_large_body_is_stamped_when_its_last_byte_has_left() -> None:
    """Not when it was handed over; pieces go out as they are."""
    piece = memoryview(b"x" * 20_000)
    connection, wire, _, task = await asked(body=(piece, b"end"), unsent_bytes=5_000)
    assert [len(data) for data in wire.sent] == [8, 20_000, 3]
    assert connection.bod_ns == 0
    connection.resume_writing()
    assert connection.bod_ns == 0, "some still waits"
    wire.unsent_bytes = 0
    connection.resume_writing()
    assert connection.bod_ns > connection.hdr_ns
    connection.data_received(OK + b"hi")
    await task


async def test_an_answer_before_the_request_was_read_whole() -> None:
    """It counts; the connection does not."""
    connection, _, reader, task = await asked(unsent_bytes=7)
    connection.data_received(OK + b"hi")
    await task
    assert (reader.status, connection.can_be_reused) == (200, False)


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        (b"", False),
        (OK[:10], False),
        (OK + b"h", False),
        (CHUNKED + b"5\r\nhel", False),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", True),
    ],
)
async def test_a_connection_that_ends(answer: bytes, whole: bool) -> None:
    """Only an answer that says so ends with its connection."""
    connection, _, _, task = await asked()
    if answer:
        connection.data_received(answer)
    connection.connection_lost(None)
    await task
    assert (connection.is_whole, connection.problem is None, connection.can_be_reused) == (whole, whole, False)
    assert connection.end_ns > 0


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        OK + b"hi" + OK,
    ],
)
async def test_a_whole_answer_after_which_nothing_can_follow(answer: bytes) -> None:
    """A 500 (vLLM closes without saying so), a goodbye, an old protocol, and a second answer to one question."""
    connection, _, reader, task = await asked()
    connection.data_received(answer)
    await task
    assert connection.is_whole and not connection.can_be_reused
    assert reader.status in (200, 500)


async def test_an_interim_answer_is_none() -> None:
    """103 Early Hints and 100 Continue come before it."""
    connection, _, reader, task = await asked()
    connection.data_received(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"hi")
    await task
    assert (reader.status, "link" in reader.headers) == (200, False)


@pytest.mark.parametrize("garbage", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * (2 * HEAD_LIMIT_BYTES)])
async def test_what_is_no_http_ends_it(garbage: bytes) -> None:
    """Also headers without an end."""
    connection, wire, _, task = await asked()
    for start in range(0, len(garbage), 10_000):
        connection.data_received(garbage[start : start + 10_000])
        if wire.is_aborted:
            break
    await task
    assert connection.problem is not None and wire.is_aborted


async def test_words_that_nobody_asked_for_close_it() -> None:
    """A parked connection that is spoken to."""
    connection, wire, _, task = await asked()
    connection.data_received(OK + b"hi")
    await task
    connection.park()
    connection.data_received(b"HTTP/1.1 408 Timeout\r\n\r\n")
    assert wire.is_aborted and connection.is_closed
    connection.connection_lost(None)

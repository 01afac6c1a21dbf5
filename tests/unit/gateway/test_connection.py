"""One connection to vLLM, fed by hand: what an answer is, what breaks it, and when another request may follow."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import pytest

from vision_bench.errors import BrokenStream
from vision_bench.gateway.connection import HEAD_LIMIT_BYTES, READ_AHEAD_BYTES, Connection


class Wire:
    """Stands in for asyncio's transport."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.events: list[str] = []
        self.unsent_bytes = 0

    def get_extra_info(self, name: str) -> Any:
        assert name == "socket"
        return self

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        if (level, option, value) == (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)):
            self.events.append("with a reset")

    def write(self, data: bytes) -> None:
        self.sent.append(bytes(data))

    def writelines(self, pieces: Any) -> None:
        self.sent += [bytes(piece) for piece in pieces]

    def abort(self) -> None:
        self.events.append("abort")

    def pause_reading(self) -> None:
        self.events.append("pause")

    def resume_reading(self) -> None:
        self.events.append("resume")

    def is_closing(self) -> bool:
        return "abort" in self.events

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes


async def sent() -> tuple[Connection, Wire]:
    """A connection that waits for its answer."""
    connection, wire = Connection(), Wire()
    connection.connection_made(wire)  # type: ignore[arg-type]
    connection.send(b"HEAD", b"body", 4)
    assert b"".join(wire.sent) == b"HEADbody"
    return connection, wire


async def whole(connection: Connection) -> bytes:
    await connection.wait_for_head()
    body = b""
    while piece := await connection.read_some():
        body += piece
    return body


PLAIN = b"HTTP/1.1 200 OK\r\ncontent-TYPE: a/b\r\nContent-Length: 3\r\n\r\nabc"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"


@pytest.mark.parametrize("answer", [PLAIN, CHUNKED, b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN])
@pytest.mark.parametrize("step", [1, 7, 1000])
async def test_an_answer_is_read_to_its_end_however_it_was_cut(answer: bytes, step: int) -> None:
    """With a length or in chunks, after an interim answer or not: the body, and a connection that can wait."""
    connection, _wire = await sent()
    for start in range(0, len(answer), step):
        connection.data_received(answer[start : start + step])
    assert await whole(connection) == b"abc"
    assert connection.status == 200
    assert connection.park(1.0)
    assert connection.is_reused


async def test_header_names_come_in_one_case() -> None:
    """Whatever vLLM writes, and the first of each name."""
    connection, _wire = await sent()
    connection.data_received(PLAIN.replace(b"\r\n\r\n", b"\r\nContent-Type: second\r\n\r\n"))
    assert connection.headers["Content-Type"] == "a/b"


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    """HTTP/1.0's way: the end of the connection is the end of the body, and no break."""
    connection, _wire = await sent()
    connection.data_received(b"HTTP/1.0 200 OK\r\n\r\nab")
    connection.data_received(b"c")
    connection.connection_lost(None)
    assert await whole(connection) == b"abc"
    assert not connection.park(1.0)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        b"HTTP/1.0 200 X\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["a 500", "close", "HTTP/1.0", "more than was asked for"],
)
async def test_after_these_the_connection_is_not_used_again(answer: bytes) -> None:
    """The answer itself is good."""
    connection, _wire = await sent()
    connection.data_received(answer)
    assert await whole(connection) == b""
    assert not connection.park(1.0)


async def test_an_answer_before_the_request_was_sent_is_the_last() -> None:
    """Bytes of the old request still wait to go out: a new one behind them would not be understood."""
    connection, wire = await sent()
    wire.unsent_bytes = 1
    connection.data_received(PLAIN)
    assert await whole(connection) == b"abc"
    assert not connection.park(1.0)


async def test_a_word_to_an_idle_connection_closes_it() -> None:
    """Nobody asked, so nobody's answer can begin with it."""
    connection, wire = await sent()
    connection.data_received(PLAIN)
    await whole(connection)
    assert connection.park(1.0)
    connection.data_received(PLAIN)
    assert connection.is_closed
    assert wire.events == ["abort"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "before it answered"),
        (b"HTTP/1.1 200 OK\r\nContent-", "before it answered"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP answer"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "no HTTP answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * HEAD_LIMIT_BYTES, "no HTTP answer"),
        (PLAIN[:-1], "in the middle"),
        (CHUNKED[:-5], "in the middle"),
        (CHUNKED.replace(b"2\r\nbc", b"zz\r\nbc"), "no HTTP answer"),
    ],
    ids=["nothing", "half a head", "no HTTP", "an upgrade", "endless headers", "short", "no last chunk", "no chunk"],
)
async def test_half_an_answer_is_a_broken_stream(answer: bytes, says: str) -> None:
    """It never passes for a whole one, and the connection is gone."""
    connection, _wire = await sent()
    for start in range(0, len(answer), 4096):
        if not connection.is_closed:
            connection.data_received(answer[start : start + 4096])
    connection.connection_lost(ConnectionResetError(104, "reset"))
    with pytest.raises(BrokenStream, match=says):
        await whole(connection)
    assert connection.has_answered == bool(answer)
    assert not connection.park(1.0)


async def test_who_waits_is_woken_by_the_break() -> None:
    """A reader that waits for more hears of the reset at once."""
    connection, _wire = await sent()
    reading = asyncio.create_task(whole(connection))
    await asyncio.sleep(0)
    connection.connection_lost(ConnectionResetError(104, "reset"))
    with pytest.raises(BrokenStream, match="ECONNRESET"):
        await reading


async def test_vllm_waits_for_a_slow_reader() -> None:
    """What lies unread is bounded: then reading stops until somebody has read."""
    connection, wire = await sent()
    piece = b"x" * 100_000
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    pieces = 0
    while "pause" not in wire.events:
        connection.data_received(piece)
        pieces += 1
    assert pieces == READ_AHEAD_BYTES // len(piece) + 1
    assert await connection.read_some() == piece * pieces
    assert wire.events == ["pause", "resume"]


async def test_a_large_body_is_not_joined() -> None:
    """Its pieces go to the socket as they lie there."""
    connection, wire = Connection(), Wire()
    connection.connection_made(wire)  # type: ignore[arg-type]
    connection.send(b"HEAD", [b"a" * 50_000, b"b" * 50_000], 100_000)
    assert [len(one) for one in wire.sent] == [4, 50_000, 50_000]


async def test_what_is_under_way_is_closed_with_a_reset_and_what_is_idle_with_a_goodbye() -> None:
    """A vLLM that does not read would hear of a plain goodbye only after all that it has not read."""
    running, wire = await sent()
    running.close()
    assert wire.events == ["with a reset", "abort"]
    idle, wire = await sent()
    idle.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    assert await whole(idle) == b"{}"
    assert idle.park(0.0)
    idle.close()
    assert wire.events == ["abort"]

"""A caller on a bare socket: sends what the plan says, leaves when the plan says, and tells what it saw."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from benchmarks.soak.plan import Ask, Conversation

from vision_bench.wire.sse import DONE, EventParser

BOUND_SECONDS = 45.0
"""No request may take longer: the longest wait for room and permit, the longest call, and a busy machine."""

_PIECE_BYTES = 1 << 16
_SLOW_BYTES, _SLOW_SECONDS = 1 << 16, 0.01
_PAUSE_SECONDS = 0.1
_OUR_ERRORS = {"truncated", "upstream_timeout", "upstream_error", "connect_failed", "acquire_timeout", "internal_error"}
_OUR_ERRORS |= {"invalid_request", "too_many_items", "too_large", "not_found", "method_not_allowed", "upload_timeout"}


@dataclass(slots=True)
class Seen:
    """What came of one request.

    Attributes:
        outcome: see ``faults``; or ``hang``, ``foreign`` (what belongs to another request), ``closed`` (no answer),
            ``unasked`` (a broken answer in front of it ended the connection), ``odd: …``.
        lines: of a batch: outcome of every line by its id.
        began, ended: on the caller's monotonic clock, seconds.
    """

    ask: Ask
    outcome: str = "closed"
    status: int | None = None
    lines: dict[str, list[str]] = field(default_factory=dict)
    began: float = 0.0
    ended: float = 0.0


@dataclass(slots=True)
class Answer:
    """One HTTP answer: ``is_whole`` says whether it came to its proper end."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool


class Caller:
    """Runs conversations against one port, and keeps the connections of those who left without a word."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._abandoned: list[asyncio.StreamWriter] = []

    @property
    def abandoned(self) -> int:
        """Connections that are open, with nobody at our end."""
        return len(self._abandoned)

    def close_abandoned(self) -> None:
        """What the kernel of a machine that is gone would do after a quarter of an hour."""
        for writer in self._abandoned:
            writer.transport.abort()
        self._abandoned.clear()

    async def converse(self, conversation: Conversation) -> list[Seen]:
        """Every request of ``conversation``, over one connection."""
        seen = [Seen(ask) for ask in conversation.asks]
        try:
            async with asyncio.timeout(BOUND_SECONDS * len(seen)):
                await self._converse(conversation, seen)
        except TimeoutError:
            next(one for one in seen if not one.ended).outcome = "hang"
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the rest of them got no answer, and say so
        for before, one in pairwise(seen):
            if one.outcome == "closed" and before.outcome.startswith(("broken", "unasked")):
                one.outcome = "unasked"
        now = time.monotonic()
        for one in seen:
            one.began, one.ended = one.began or now, one.ended or now
        return seen

    async def _converse(self, conversation: Conversation, seen: Sequence[Seen]) -> None:
        last = conversation.asks[-1]
        reader, writer = await self._connect(last)
        is_kept = False
        try:
            if conversation.is_pipelined:
                is_kept = await self._pipeline(reader, writer, seen)
            else:
                for one in seen:
                    one.began = time.monotonic()
                    if one.ask.leaves:
                        is_kept = await self._leave(reader, writer, one)
                    elif not await self._exchange(reader, writer, one):
                        break
        finally:
            if is_kept:
                self._abandoned.append(writer)
            else:
                leave(writer, is_reset=last.is_reset)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, one: Seen) -> bool:
        """One request and its answer; whether the connection can go on."""
        # Sent and read at once: a refusal may come while there is still something to send.
        sending = asyncio.ensure_future(send(writer, one.ask))
        try:
            return await self._receive(reader, one)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _pipeline(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Sequence[Seen]) -> bool:
        *others, last = seen
        sent = others if last.ask.leaves else seen
        for one in seen:
            one.began = time.monotonic()
        writer.write(b"".join(request_bytes(one.ask) for one in sent))
        if others[0].ask.leaves:  # together with the last
            for one in others:
                one.outcome = "left"
        else:
            for one in sent:
                if not await self._receive(reader, one):
                    return False
        return await self._leave(reader, writer, last) if last.ask.leaves else False

    async def _connect(self, last: Ask) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        inside = socket.socket()
        if last.reads_slowly or last.leaves == "never_reads":
            inside.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
        inside.setblocking(False)
        await asyncio.get_running_loop().sock_connect(inside, ("127.0.0.1", self._port))
        return await asyncio.open_connection(sock=inside, limit=_PIECE_BYTES)

    async def _receive(self, reader: asyncio.StreamReader, one: Seen) -> bool:
        """Read and judge an answer; whether the connection can go on."""
        answer = await read_answer(reader, reads_slowly=one.ask.reads_slowly)
        judge(one, answer)
        one.ended = time.monotonic()
        return answer.is_whole and answer.headers.get("connection") != "close"

    async def _leave(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, one: Seen) -> bool:
        """Leave as planned; whether the connection stays open."""
        ask = one.ask
        one.outcome = "left"
        one.began = time.monotonic()
        match ask.leaves:
            case "in_head":
                writer.write(request_bytes(ask)[:40])
                await writer.drain()
                await asyncio.sleep(ask.leaves_after_ms / 1e3)
            case "in_upload" | "vanishes_in_upload":
                writer.write((data := request_bytes(ask))[: len(data) * 2 // 3])
                await writer.drain()
                if ask.leaves == "vanishes_in_upload":
                    writer.transport.pause_reading()  # type: ignore[attr-defined]
                    return True
                await asyncio.sleep(ask.leaves_after_ms / 1e3)
            case "at_once":
                await send(writer, ask)
            case "waiting" | "before_first_byte":
                await send(writer, ask)
                await asyncio.sleep(ask.leaves_after_ms / 1e3)
            case "in_body":
                await send(writer, ask)
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(1)
            case "after_last_byte":
                await send(writer, ask)
                await self._receive(reader, one)
            case "half_closed":
                await send(writer, ask)
                writer.write_eof()
                await reader.read(-1)
            case "vanishes" | "never_reads":
                await send(writer, ask)
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                return True
            case _:
                raise ValueError(ask.leaves)
        return False


def leave(writer: asyncio.StreamWriter, *, is_reset: bool) -> None:
    """Close at once, with a reset or as one does."""
    inside: socket.socket | None = writer.get_extra_info("socket")
    if is_reset and inside is not None and inside.fileno() >= 0:
        inside.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def request_bytes(ask: Ask) -> bytes:
    """The whole request."""
    if ask.refused == "no_http":
        return b"\x16\x03\x01 this is no request\r\n\r\n"
    method = "GET" if ask.kind == "healthz" or ask.refused == "wrong_method" else "POST"
    head = f"{method} {ask.path} HTTP/1.1\r\nHost: gateway\r\nX-Request-Id: {ask.marker}\r\n"
    body = ask.payload()
    if method == "GET":
        return f"{head}\r\n".encode()
    head += "Content-Type: application/json\r\n"
    if not ask.is_chunked:
        size_bytes = len(body) + (ask.refused == "stands_still")
        return f"{head}Content-Length: {size_bytes}\r\n\r\n".encode() + body
    pieces = [f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()]
    for start in range(0, len(body), _PIECE_BYTES):
        piece = body[start : start + _PIECE_BYTES]
        pieces += [b"%x\r\n" % len(piece), piece, b"\r\n"]
    return b"".join([*pieces, b"0\r\n\r\n"])


async def send(writer: asyncio.StreamWriter, ask: Ask) -> None:
    """Send the whole request."""
    if writer.is_closing():  # uvloop would say so with a RuntimeError
        raise ConnectionResetError
    data = request_bytes(ask)
    if ask.pauses:
        before, data = data[: len(data) * 3 // 4], data[len(data) * 3 // 4 :]
        writer.write(before)
        await writer.drain()
        await asyncio.sleep(_PAUSE_SECONDS)
        if writer.is_closing():
            raise ConnectionResetError
    writer.write(data)
    await writer.drain()


async def read_answer(reader: asyncio.StreamReader, *, reads_slowly: bool = False) -> Answer:
    """One answer, to its end or to the end of the connection.

    Raises:
        IncompleteReadError: the connection ended before the head of an answer.
    """
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = bytearray()

    async def take(size_bytes: int) -> None:
        while size_bytes:
            piece = await reader.read(min(size_bytes, _SLOW_BYTES))
            if not piece:
                raise EOFError
            body.extend(piece)
            size_bytes -= len(piece)
            if reads_slowly:
                await asyncio.sleep(_SLOW_SECONDS)

    is_whole = True
    try:
        if headers.get("transfer-encoding") == "chunked":
            while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
                await take(size)
                await reader.readexactly(2)
            await reader.readexactly(2)
        elif "content-length" in headers:
            await take(int(headers["content-length"]))
        else:
            body.extend(await reader.read(-1))
    except (EOFError, ConnectionError):  # IncompleteReadError is the first
        is_whole = False
    return Answer(int(first.split(" ")[1]), headers, bytes(body), is_whole)


def judge(one: Seen, answer: Answer) -> None:
    """What ``answer`` is to this request: fills in ``one``."""
    ask = one.ask
    one.status = answer.status
    if ask.refused == "no_http":
        one.outcome = "not_http" if answer.status == 400 else f"odd: {answer.status}"
    elif answer.headers.get("x-request-id") != ask.marker:
        one.outcome = "foreign"
    elif ask.kind == "healthz":
        one.outcome = "ok" if (answer.status, answer.body) == (200, b'{"ok":true}') else f"odd: {answer.body[:80]!r}"
    elif ask.kind == "batch" and answer.status == 200:
        _judge_lines(one, answer)
    elif answer.headers.get("content-type", "").startswith("text/event-stream"):
        one.outcome = _judge_stream(ask, answer)
    else:
        one.outcome = _judge_plain(ask, answer)


def _judge_plain(ask: Ask, answer: Answer) -> str:
    if not answer.is_whole:
        return "broken"
    marker = ask.marker
    if answer.status >= 400:
        error = json.loads(answer.body)["error"]
        if error["type"] in _OUR_ERRORS:
            return str(error["type"])
        return f"http_{answer.status}" if error["message"].endswith(f" {marker}") else "foreign"
    return _of_upstream(answer.body, marker, ask.checksums()[marker])


def _of_upstream(body: bytes, marker: str, crc: int) -> str:
    try:
        value = json.loads(body)
    except ValueError:
        return "passed" if body in (b"", f"<h1>{marker}</h1>".encode()) else "foreign"
    if "error" in value:
        return "passed" if value["error"]["message"].endswith(f" {marker}") else "foreign"
    if value["marker"] != marker:
        return "foreign"
    if value["crc"] != crc:
        return "odd: the body changed on its way"
    return "passed" if "logprobs" in value else "ok"


def _judge_stream(ask: Ask, answer: Answer) -> str:
    parser = EventParser()
    events = [event.data for event in parser.feed(answer.body)]
    values: list[Any] = [json.loads(data) for data in events if data != DONE]
    errors = [value["error"] for value in values if "error" in value]
    crc = ask.checksums()[ask.marker]
    if any((value["marker"], value["crc"]) != (ask.marker, crc) for value in values if "error" not in value):
        return "foreign"
    has_end = bool(events) and events[-1] == DONE
    if not answer.is_whole:
        return f"broken:{errors[0]['type']}" if errors and not has_end else "broken"
    if errors:
        return "passed" if errors[0]["message"].endswith(f" {ask.marker}") else "foreign"
    return ("ok" if ask.calls[0].is_streamed else "passed") if has_end else "odd: no end"


def _judge_lines(one: Seen, answer: Answer) -> None:
    if not answer.is_whole:
        one.outcome = "broken"
        return
    checksums = one.ask.checksums()
    for raw in answer.body.split(b"\n")[:-1]:
        line = json.loads(raw, parse_constant=_refuse)
        one.lines.setdefault(line["id"], []).append(_judge_line(line, checksums.get(line["id"])))
    counts = {marker: len(outcomes) for marker, outcomes in one.lines.items()}
    is_right = counts == dict.fromkeys(checksums, 1) and answer.headers["x-batch-total"] == str(len(checksums))
    one.outcome = "ok" if is_right else "odd: not one line an item"


def _judge_line(line: dict[str, Any], crc: int | None) -> str:
    marker = line["id"]
    if crc is None:
        return "foreign"
    if "body" in line:
        outcome = _of_upstream(json.dumps(line["body"]).encode(), marker, crc)
        return "ok" if outcome == "passed" else outcome
    name, colon, _ = line["error"].partition(": ")
    if colon and name in _OUR_ERRORS:
        return str(name)
    return f"http_{line['status']}" if line["error"].endswith(f" {marker}") else "foreign"


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")

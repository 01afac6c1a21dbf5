"""Holds one session of generated video and fills in its record: the only place of this kind that does I/O in a run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from websockets.exceptions import ConnectionClosed

from vision_bench.bench.realtime.journal import Journal
from vision_bench.bench.realtime.plan import SessionPlan
from vision_bench.bench.realtime.reader import SessionReader
from vision_bench.bench.realtime.record import Fact, FactName, SessionRecord
from vision_bench.bench.realtime.socket import RealtimeAddress, StampedConnection, open_socket, wait_closed
from vision_bench.errors import UpstreamError
from vision_bench.wire.realtime.control import PING, STOP
from vision_bench.wire.realtime.events import VideoStart, read_event
from vision_bench.wire.shapes import Json

FIRST_CHUNK_TIMEOUT = "first_chunk_timeout"
CHUNK_TIMEOUT = "chunk_timeout"
NS_PER_SECOND = 1_000_000_000


def _encode(message: Json) -> str:
    """As JSON that can be written down: half of a surrogate pair, which JSON may escape, is no text."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="replace").decode()


class RealtimeTarget:
    """One server. Nothing is retried: a retry would hide a failure.

    Args:
        folder: where each session's bytes go as they come, ``NNNNNN.mp4``; None keeps none.
        on_chunk: told of each chunk, for the line of progress.
        open_seconds: how long a connection may take to open.
    """

    def __init__(
        self,
        address: RealtimeAddress,
        plan: SessionPlan,
        *,
        api_key: str | None = None,
        journal: Journal | None = None,
        folder: Path | None = None,
        on_chunk: Callable[[SessionRecord], None] | None = None,
    ) -> None:
        self._address = address
        self._plan = plan
        self._api_key = api_key
        self._journal = journal
        self._folder = folder
        self._on_chunk = on_chunk

    async def send(self, record: SessionRecord) -> None:
        """Hold the session that the record stands for; failures are outcomes."""
        record.num_chunks = self._plan.num_chunks
        reader = SessionReader(record)

        def take(fact: Fact) -> None:
            if self._journal is not None:
                self._journal.add(record, fact)
            reader.take(fact)

        take(Fact(ns=time.monotonic_ns(), name="connecting"))
        with contextlib.ExitStack() as files:
            video = None
            if self._folder is not None:
                video = files.enter_context((self._folder / f"{record.ordinal:06d}.mp4").open("wb"))
            try:
                async with open_socket(self._address, api_key=self._api_key) as socket:
                    take(Fact(ns=time.monotonic_ns(), name="open"))
                    await _Session(socket, self._plan, record, reader, take, video, self._on_chunk).hold()
            except UpstreamError as problem:
                record.ended_ns = time.monotonic_ns()
                record.end(problem.outcome, str(problem))


class _Session:
    """One open connection and what is said over it."""

    def __init__(  # noqa: PLR0917
        self,
        socket: StampedConnection,
        plan: SessionPlan,
        record: SessionRecord,
        reader: SessionReader,
        take: Callable[[Fact], None],
        video: BinaryIO | None,
        on_chunk: Callable[[SessionRecord], None] | None,
    ) -> None:
        self._socket = socket
        self._plan = plan
        self._record = record
        self._reader = reader
        self._take = take
        self._video = video
        self._on_chunk = on_chunk
        self._due = sorted(plan.interactions)
        self._sending = asyncio.Lock()
        self._started = asyncio.Event()

    async def hold(self) -> None:
        """From ``session.start`` to the end, whatever it is."""
        pings = asyncio.create_task(self._ping())
        try:
            if await self._say(self._plan.start):
                self._fact("started")
            while not self._reader.is_done and self._record.outcome is None:
                await self._next()
            if self._record.outcome is None:
                code = await wait_closed(self._socket)
                self._fact("closed", size=code)
        except ConnectionClosed:
            self._fact("closed", size=self._socket.close_code or 1006)
        finally:
            pings.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
                await pings

    async def _next(self) -> None:
        """The next message, or the deadline before it."""
        until_ns, outcome = self._deadline()
        try:
            async with asyncio.timeout((until_ns - time.monotonic_ns()) / NS_PER_SECOND):
                message, now_ns = await self._socket.receive()
        except TimeoutError:
            self._fact("late", text=outcome)
            return
        if isinstance(message, str):
            self._read(message, now_ns)
            return
        self._take(Fact(ns=now_ns, name="binary", size=len(message)))
        if self._video is not None:
            self._video.write(message)
        if self._on_chunk is not None:
            self._on_chunk(self._record)
        await self._act()

    def _read(self, message: str, now_ns: int) -> None:
        try:
            event = read_event(message)
        except ValueError as problem:
            self._take(Fact(ns=now_ns, name="unreadable", text=str(problem)))
            return
        if isinstance(event, VideoStart):
            event = replace(event, config={})  # it repeats the request, picture and all
            self._started.set()
        shown: Json = {"type": event.type} if not hasattr(event, "to_message") else event.to_message()
        self._take(Fact(ns=now_ns, name="text", text=_encode(shown)))

    async def _act(self) -> None:
        """What is due now that another chunk is there."""
        received = self._reader.last_index
        if received is None:
            return
        plan = self._plan
        while self._due and self._due[0] <= received:
            for message in plan.interactions[self._due.pop(0)]:
                await self._say(message, is_control=True)
        if plan.is_dropped(self._record.index, received):
            self._socket.transport.abort()
            self._fact("left")
        elif plan.stop_after_chunk is not None and received >= plan.stop_after_chunk and not self._record.stop_sent_ns:
            await self._say(_encode(STOP), is_control=True)

    async def _say(self, message: str, *, is_control: bool = False) -> bool:
        """Send within the time that the next chunk has, since a server may stop reading; False when it did not go.

        A connection that has ended is noticed by reading: what came before its end is not read yet.
        """
        until_ns, outcome = self._deadline()
        try:
            async with asyncio.timeout((until_ns - time.monotonic_ns()) / NS_PER_SECOND):
                await (self._control(message) if is_control else self._socket.send(message))
        except TimeoutError:
            self._fact("late", text=outcome)
            return False
        except ConnectionClosed:
            return False
        return True

    async def _control(self, message: str) -> None:
        """Send a control message, noted before it goes so that no reply can be there sooner."""
        async with self._sending:
            self._fact("sending", text=message)
            await self._socket.send(message)

    async def _ping(self) -> None:
        await self._started.wait()
        while True:
            await asyncio.sleep(self._plan.patience.ping_seconds)
            await self._control(_encode(PING))

    def _deadline(self) -> tuple[int, str]:
        """Until when the next message must be there, and what it is called when it is not."""
        patience, reader = self._plan.patience, self._reader
        started_ns = self._record.start_sent_ns or self._record.connected_ns or 0
        if reader.last_media_ns is None:
            until_ns, outcome = started_ns + _ns(patience.first_chunk_seconds), FIRST_CHUNK_TIMEOUT
        else:
            until_ns, outcome = reader.last_media_ns + _ns(patience.chunk_seconds), CHUNK_TIMEOUT
        if reader.in_doubt_since_ns is not None:
            until_ns = min(until_ns, reader.in_doubt_since_ns + _ns(patience.doubt_seconds))
        return until_ns, outcome

    def _fact(self, name: FactName, *, text: str | None = None, size: int | None = None) -> None:
        self._take(Fact(ns=time.monotonic_ns(), name=name, text=text, size=size))


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_SECOND)

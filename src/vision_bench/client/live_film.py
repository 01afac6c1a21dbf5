"""A film sent into a live stream in real time, as a camera would: JPEG frames with their times, over a WebSocket."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import av
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from vision_bench.errors import BrokenStream, ConnectFailed, UpstreamTimeout, reason
from vision_bench.live.clocks import Offset, Stamp, offset_from_exchange
from vision_bench.live.films import Rounds, pictures
from vision_bench.live.pictures import JpegEncoder

TIMEOUT_SECONDS = 20.0
LATE_SECONDS = 0.25
"""A picture that is later than this is left out: a camera does not catch up either."""
CLOCK_EXCHANGES = 8


@dataclass(slots=True)
class Published:
    """What became of a film's pictures. ``skipped``: this machine was too slow for them."""

    stream_id: str
    sent: int = 0
    stored: int = 0
    skipped: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


async def send_film(
    film: Path,
    published: Published,
    publish: dict[str, Any],
    *,
    gateway: str,
    max_fps: float | None = None,
    rounds: int | None = 1,
    clock: str | None = None,
    on_picture: Callable[[Published], None] = lambda so_far: None,
) -> None:
    """Send ``film`` into a stream at its own pace.

    Args:
        published: counts what becomes of the pictures.
        publish: of the stream's creation, or of its last keepalive: where to, and with which token.
        rounds: how often the film is shown; None: until it is cancelled or the stream ends.
        clock: names this process' monotonic clock in the stamps of the pictures.

    Raises:
        InvalidMedia: the film holds no pictures.
        ConnectFailed, UpstreamTimeout, BrokenStream: the gateway cannot be reached, or ends the connection.
    """
    url, token = _push_address(publish, gateway)
    async with _connection(url, token) as socket:
        await _send(
            socket,
            film,
            published,
            max_fps=max_fps,
            rounds=rounds,
            clock=clock or f"publisher-{secrets.token_hex(4)}",
            on_picture=on_picture,
        )


def _push_address(publish: dict[str, Any], gateway: str) -> tuple[str, str]:
    """Where to push, and the token. The gateway names the host by which it was asked; behind a proxy that hides it,
    or that takes a folder off its path, ours is the one that works."""
    named = publish["url"] if publish["type"] == "push" else publish["vision_bench"]["push_url"]
    _, folder, stream_id = urlsplit(named).path.rpartition("/live/push/")
    return f"ws{gateway.removeprefix('http')}{folder}{stream_id}", publish["token"]


@asynccontextmanager
async def _connection(url: str, token: str) -> AsyncIterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with connect(url, additional_headers=headers, compression=None, proxy=None) as socket:
            yield socket
    except ConnectionClosed as problem:
        why = problem.rcvd.reason if problem.rcvd is not None else ""
        raise BrokenStream(f"the gateway closed the connection{f': {why}' if why else ''}") from problem
    except (OSError, InvalidHandshake) as problem:
        raise ConnectFailed(f"{url} takes no pictures: {reason(problem)}") from problem


class _Camera:
    """What sends pictures over one connection, and hears what became of them."""

    def __init__(self, socket: ClientConnection, published: Published, clock: str) -> None:
        self._socket = socket
        self._published = published
        self._encoder = JpegEncoder()
        self._clock = clock
        self._all_answered = asyncio.Event()

    async def tell_offset(self) -> None:
        """Exchange clocks a few times and tell the server the tightest offset."""
        best: Offset | None = None
        for _ in range(CLOCK_EXCHANGES):
            asked = Stamp(self._clock, time.monotonic_ns())
            await self._socket.send(json.dumps({"type": "clock", "asked_ns": asked.ns}))
            answer = json.loads(await asyncio.wait_for(self._socket.recv(), TIMEOUT_SECONDS))
            heard = Stamp(self._clock, time.monotonic_ns())
            received, replied = (Stamp(answer["clock"], answer[name]) for name in ("received_ns", "replied_ns"))
            offset = offset_from_exchange(asked, received, replied, heard)
            if offset is not None and (best is None or offset.bound_ns < best.bound_ns):
                best = offset
        if best is not None:
            told = {"type": "offset", "clock": self._clock, "offset_ns": best.offset_ns, "bound_ns": best.bound_ns}
            await self._socket.send(json.dumps(told))

    async def show(self, frame: av.VideoFrame, due: float) -> None:
        """One picture, when it is due: that is the moment at which this camera sees it."""
        wait_seconds = due - time.monotonic()
        if wait_seconds < -LATE_SECONDS:
            self._published.skipped += 1
            return
        await asyncio.sleep(max(0.0, wait_seconds))
        captured_ns = time.monotonic_ns()
        jpeg, _, _ = await asyncio.to_thread(self._encoder.encode, frame)
        about = {"type": "frame", "timestamp_ms": captured_ns / 1e6, "clock": self._clock}
        await self._socket.send(json.dumps({**about, "captured_ns": captured_ns, "sent_ns": time.monotonic_ns()}))
        self._published.sent += 1
        self._all_answered.clear()
        await self._socket.send(jpeg)

    async def hear(self) -> None:
        """Count the answers until the connection ends.

        Raises:
            BrokenStream: it has.
        """
        published = self._published
        async for text in self._socket:
            answer = json.loads(text)
            if answer.get("type") == "stored":
                published.stored += 1
            elif answer.get("type") == "dropped":
                published.dropped[str(answer.get("reason"))] += 1
            if published.stored + published.dropped.total() >= published.sent:
                self._all_answered.set()
        raise BrokenStream(f"the gateway closed the connection: {self._socket.close_reason or 'it gave no reason'}")

    async def answered(self) -> None:
        """Wait until every picture was answered.

        Raises:
            UpstreamTimeout: the last ones were not.
        """
        try:
            await asyncio.wait_for(self._all_answered.wait(), TIMEOUT_SECONDS if self._published.sent else 0.0)
        except TimeoutError:
            if self._published.sent:
                raise UpstreamTimeout(f"the last pictures were not answered in {TIMEOUT_SECONDS:g} s") from None


async def _send(
    socket: ClientConnection,
    film: Path,
    published: Published,
    *,
    max_fps: float | None,
    rounds: int | None,
    clock: str,
    on_picture: Callable[[Published], None],
) -> None:
    camera = _Camera(socket, published, clock)
    await camera.tell_offset()
    hearing = asyncio.create_task(camera.hear())
    try:
        shown, times = 0, Rounds(began=time.monotonic())
        while rounds is None or shown < rounds:
            async for seconds, frame in _in_thread(pictures(film, max_fps=max_fps)):
                if seconds == 0:  # opening the film took its time, for which no picture is skipped
                    times.began = max(times.began, time.monotonic())
                await camera.show(frame, times.at(seconds))
                on_picture(published)
                if hearing.done():
                    hearing.result()
            shown += 1
            times.end()
        await camera.answered()
    finally:
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)


async def _in_thread(source: Iterator[tuple[float, av.VideoFrame]]) -> AsyncIterator[tuple[float, av.VideoFrame]]:
    """What ``source`` gives, decoded beside the event loop."""
    while (item := await asyncio.to_thread(next, source, None)) is not None:
        yield item

"""A scripted server of generated video on a loopback port: it says what a test tells it to, oddities included."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from vision_bench.bench.realtime.plan import Patience, SessionPlan
from vision_bench.bench.realtime.record import SessionRecord
from vision_bench.bench.realtime.socket import RealtimeAddress, read_address
from vision_bench.bench.realtime.target import RealtimeTarget
from vision_bench.wire.realtime.events import ChunkMetadata, ErrorEvent, InteractionQueued, SessionDone, VideoStart

Script = Callable[["Stage"], Awaitable[None]]
QUICK = Patience(first_chunk_seconds=20, chunk_seconds=20, ping_seconds=20, doubt_seconds=5)


class Stage:
    """One connection, as a script sees it."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []
        self.transport = 0

    async def say(self, event: Any) -> None:
        await self.socket.send(json.dumps(event if isinstance(event, dict) else event.to_message()))

    async def hear(self) -> dict[str, Any]:
        message = json.loads(await self.socket.recv())
        self.heard.append(message)
        return dict(message)

    async def hear_type(self, name: str) -> dict[str, Any]:
        """The next message of a type; pings and others before it are only heard."""
        while (message := await self.hear())["type"] != name:
            pass
        return message

    async def begin(self, *, config: dict[str, Any] | None = None) -> None:
        """Read the start and accept it."""
        await self.hear()
        await self.say(VideoStart("video_stream-1", config or {}))

    async def chunk(self, index: int | None, *, frames: int = 12, data: bytes = b"x" * 100, **lists: Any) -> None:
        await self.say(ChunkMetadata("video_stream-1", "media", frames, len(data), index, self.transport, **lists))
        self.transport += 1
        await self.socket.send(data)

    async def trailer(self) -> None:
        await self.say(ChunkMetadata("video_stream-1", "trailer", 0, 10, None, self.transport))
        self.transport += 1
        await self.socket.send(b"x" * 10)

    async def queued(self, event_id: str) -> None:
        await self.say(InteractionQueued("video_stream-1", event_id))

    async def error(self, message: str, **fields: Any) -> None:
        await self.say(ErrorEvent(message, **fields))

    async def done(self, *, stopped: bool = False) -> None:
        await self.say(SessionDone("video_stream-1", self.transport, stopped))

    def vanish(self) -> None:
        """End the connection as the original does: without a close frame, once what was said is out."""
        self.socket.transport.close()


@asynccontextmanager
async def scripted(
    script: Script, *, status: int | None = None, location: str | None = None
) -> AsyncIterator[RealtimeAddress]:
    """A server that plays ``script`` for every connection, or refuses each with ``status``."""

    def refuse(connection: ServerConnection, _: Request) -> Response | None:
        if status is None:
            return None
        response = connection.respond(status, "no\n")
        if location is not None:
            response.headers["Location"] = location
        return response

    async def play(socket: ServerConnection) -> None:
        stage = Stage(socket)
        await script(stage)
        stage.vanish()

    async with serve(play, "127.0.0.1", 0, process_request=refuse, max_size=2**24, ping_interval=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield read_address(f"ws://127.0.0.1:{port}")


def plan(
    *,
    num_chunks: int = 3,
    patience: Patience = QUICK,
    interactions: Mapping[int, Sequence[dict[str, Any]]] | None = None,
    start: str = '{"type":"session.start","prompt":"p"}',
    **options: Any,
) -> SessionPlan:
    messages = {after: [json.dumps(one) for one in these] for after, these in (interactions or {}).items()}
    return SessionPlan(start=start, num_chunks=num_chunks, interactions=messages, patience=patience, **options)


async def hold(target: RealtimeTarget, *, index: int = 0) -> SessionRecord:
    """One session, from its being due to its end."""
    record = SessionRecord(step=1, index=index, ordinal=index, due_ns=0)
    async with asyncio.timeout(60):
        await target.send(record)
    return record


def prompt_event(event_id: str) -> dict[str, Any]:
    return {"type": "session.interaction", "interaction": {"event_id": event_id, "event": {"prompt": "rain"}}}

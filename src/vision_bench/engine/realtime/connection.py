"""One client's WebSocket: the protocol's state machine between the socket and the engine."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import assert_never
from uuid import uuid4

from starlette.websockets import WebSocket, WebSocketDisconnect

from vision_bench.engine.realtime.conditioning import EngineFailure
from vision_bench.engine.realtime.engine import RealtimeEngine, Rollout, Times
from vision_bench.engine.realtime.protocol import (
    NS_PER_SECOND,
    Abort,
    Action,
    Chunk,
    Close,
    Forward,
    Generate,
    Phase,
    Send,
    SendMedia,
    Session,
    Step,
    next_deadline_ns,
    on_binary,
    on_chunk,
    on_client_gone,
    on_clock,
    on_generation_ended,
    on_generation_failed,
    on_registered,
    on_send_failed,
    on_text,
    refuse_model,
)
from vision_bench.engine.realtime.truth import SessionTruth, TruthLog
from vision_bench.wire.shapes import Json

POLL_SECONDS = 1.0
"""How often the original looks at its clocks."""
GOING_AWAY = 1012
CANNOT_STREAM = "Streaming video output is not supported by this model"


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """Something for the socket, and of media when it was due."""

    action: Send | SendMedia | Close
    times: Times | None = None


class Connection:
    """From being accepted to its end. The engine calls the ``on_`` methods in the event loop."""

    def __init__(self, socket: WebSocket, engine: RealtimeEngine, truth: TruthLog) -> None:
        settings = engine.settings
        self._socket = socket
        self._engine = engine
        self._truth_log = truth
        self._truth: SessionTruth | None = None
        self._rollout: Rollout | None = None
        self._has_left = False
        self._outgoing: asyncio.Queue[_Outgoing] = asyncio.Queue()
        self._session = Session(
            settings.model_name,
            f"video_stream-{uuid4().hex}",
            time.monotonic_ns(),
            settings.deadlines,
        )

    async def serve(self) -> None:
        """Returns when the connection has ended. Without a close frame it is the server below that drops it."""
        await self._socket.accept()
        if not self._engine.settings.can_stream:
            self._do(refuse_model(CANNOT_STREAM))
            await self._write()
            return
        side_tasks = (asyncio.create_task(self._read()), asyncio.create_task(self._watch()))
        try:
            await self._write()
        finally:
            for task in side_tasks:
                task.cancel()
            if self._rollout is not None:
                self._rollout.abort()

    def on_chunk(self, chunk: Chunk, times: Times) -> None:
        """A chunk is due."""
        self._apply(on_chunk(self._session, chunk, now_ns=time.monotonic_ns()), times)
        if self._has_left:
            self._leave()

    def on_ended(self, trailer: bytes, times: Times | None) -> None:
        """The engine is through with the request."""
        self._apply(on_generation_ended(self._session, trailer), times)

    def on_failed(self, message: str) -> None:
        """The engine cannot go on with the request."""
        self._apply(on_generation_failed(self._session, message))

    def on_dropped(self) -> None:
        """Somebody pulled the plug."""
        self._leave()

    async def _read(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                self._has_left = True
                if message.get("code") == GOING_AWAY or self._session.phase is Phase.WAITING:
                    self._leave()  # nothing will be sent that could fail
                self._apply(on_client_gone(self._session))
                return
            text = message.get("text")
            if text is None:
                self._apply(on_binary(self._session))
            else:
                self._apply(on_text(self._session, text, now_ns=time.monotonic_ns(), fresh_id=uuid4().hex))

    async def _watch(self) -> None:
        while True:
            deadline_ns = next_deadline_ns(self._session)
            left_ns = POLL_SECONDS * NS_PER_SECOND if deadline_ns is None else deadline_ns - time.monotonic_ns() + 1
            await asyncio.sleep(min(POLL_SECONDS, max(0, left_ns) / NS_PER_SECOND))
            self._apply(on_clock(self._session, now_ns=time.monotonic_ns()))

    async def _write(self) -> None:
        """Send what is to be sent, one thing after the other, until the connection ends."""
        try:
            while True:
                outgoing = await self._outgoing.get()
                match outgoing.action:
                    case Send(event):
                        await self._send_text(event.to_message())
                    case SendMedia() as media:
                        await self._send_media(media, outgoing.times)
                    case Close(code):
                        if code is not None:
                            await self._socket.close(code)
                        return
        except WebSocketDisconnect:
            self._apply(on_send_failed(self._session))

    async def _send_media(self, media: SendMedia, times: Times | None) -> None:
        await self._send_text(media.metadata.to_message())
        await self._socket.send_bytes(media.data)
        if self._truth is not None and times is not None:
            self._truth.frame_sent(
                slot_ns=times.slot_ns,
                due_ns=times.due_ns,
                sent_ns=time.monotonic_ns(),
                started_event_ids=media.metadata.started_event_ids,
            )

    async def _send_text(self, message: Json) -> None:
        await self._socket.send_text(json.dumps(message, separators=(",", ":")))

    def _apply(self, step: Step, times: Times | None = None) -> None:
        self._session = step.session
        self._do(step.actions, times)

    def _do(self, actions: tuple[Action, ...], times: Times | None = None) -> None:
        for action in actions:
            match action:
                case Send() | SendMedia() | Close():
                    self._outgoing.put_nowait(_Outgoing(action, times))
                case Generate(start):
                    self._truth = self._truth_log.begin(self._session.request_id, self._session.quiet_since_ns)
                    self._rollout = self._engine.submit(start, self)
                    self._apply(on_registered(self._session))
                case Forward():
                    self._forward(action)
                case Abort():
                    if self._rollout is not None:
                        self._rollout.abort()
                case _:
                    assert_never(action)

    def _forward(self, event: Forward) -> None:
        if self._rollout is None or self._truth is None:
            return
        self._truth.event_read(event.event_id, time.monotonic_ns())
        try:
            self._rollout.interact(event.event_id, event.interaction)
        except EngineFailure as failure:
            self.on_failed(str(failure))
            self._rollout.abort()

    def _leave(self) -> None:
        """Nobody is there to be told anything."""
        self._apply(on_send_failed(self._session))
        self._outgoing.put_nowait(_Outgoing(Close()))

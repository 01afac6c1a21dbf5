"""JPEG frames over a WebSocket into a stream: ``live.push`` with its connection."""

from __future__ import annotations

import asyncio
import json

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState

from vision_bench.gateway.live_server import LiveServer
from vision_bench.live.failures import StreamFailure
from vision_bench.live.push import BadMessage, PushReader

router = APIRouter()

PROTOCOL = "vision-bench.push.v1"
"""The subprotocol of browsers, which cannot send a header: ``[PROTOCOL, "token.<token>"]``."""
IDLE_SECONDS = 60.0
"""A connection without a message for so long is closed."""
_POLICY, _NORMAL, _REPLACED = 1008, 1000, 4000


class _Connection:
    """One connection that pushes, as the feed of its stream."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()

    async def close(self) -> None:
        self.closing.set()


@router.websocket("/live/push/{stream_id}")
async def push(socket: WebSocket, stream_id: str) -> None:
    """Each picture is answered with its index, or with the reason why it was dropped."""
    live: LiveServer = socket.app.state.live
    offered = socket.scope.get("subprotocols", [])
    token = next((name.removeprefix("token.") for name in offered if name.startswith("token.")), None)
    try:
        stream = live.by_token(socket, "publish", stream_id, token=token)
    except StreamFailure:
        await socket.close(_POLICY)  # before it was accepted: 403
        return
    await socket.accept(subprotocol=PROTOCOL if PROTOCOL in offered else None)
    feed = _Connection()
    live.feed(stream, feed)
    reader = PushReader(live.inlet(stream))
    reading = asyncio.create_task(_read(socket, reader))
    closing = asyncio.create_task(feed.closing.wait())
    try:
        await asyncio.wait((reading, closing), return_when=asyncio.FIRST_COMPLETED)
        code, reason = reading.result() if reading.done() else _why_closed(stream.is_active)
        if socket.client_state == WebSocketState.CONNECTED:
            await socket.close(code, reason)
    except (WebSocketDisconnect, OSError, RuntimeError):
        pass  # it has left
    finally:
        for task in (reading, closing):
            task.cancel()
        await asyncio.gather(reading, closing, return_exceptions=True)
        live.left(stream.id, feed)


def _why_closed(is_active: bool) -> tuple[int, str]:
    return (
        (_REPLACED, "another connection publishes this stream now") if is_active else (_NORMAL, "the stream has ended")
    )


async def _read(socket: WebSocket, reader: PushReader) -> tuple[int, str]:
    """Answer messages until it is over; code and reason with which to close."""
    while True:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    return _NORMAL, ""
                data = message.get("bytes")
                answer = reader.text(message.get("text") or "") if data is None else reader.picture(data)
                if answer is not None:
                    # Who does not read the answers is read from no more: nothing gathers here.
                    await socket.send_text(json.dumps(answer))
        except TimeoutError:
            return _POLICY, f"no message for {IDLE_SECONDS:g} s"
        except BadMessage as problem:
            return _POLICY, str(problem)

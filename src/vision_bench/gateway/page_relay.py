"""A browser's way to the server of generated video: its messages pass both ways as they are.

The server's own port stays closed to the world, and its key, which a browser could not send, stays here.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import websockets
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from websockets.asyncio.client import ClientConnection

PATH = "/realtime/video"
CONNECT_SECONDS = 10.0
MESSAGE_LIMIT_BYTES = 64 * 1024 * 1024
"""One message of the server. ``video.start`` repeats the request, picture and all; a chunk is a megabyte or two."""
MESSAGES_AHEAD = 4
"""What is read of the server and not yet taken by the browser, so that a slow one holds up its own server."""

_NORMAL, _FAILED = 1000, 1011


async def relay(socket: WebSocket, base_url: str, *, api_key: str | None) -> None:
    """Pass messages between an accepted ``socket`` and the server until one of them leaves; close ``socket``.

    A server that cannot be reached is told as an error of the protocol, for a browser hears nothing else of it.
    """
    url = f"ws{base_url.removeprefix('http')}{PATH}"
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    try:
        server = await websockets.connect(
            url,
            additional_headers=headers,
            open_timeout=CONNECT_SECONDS,
            max_size=MESSAGE_LIMIT_BYTES,
            max_queue=MESSAGES_AHEAD,
            compression=None,
            ping_interval=None,  # the page pings; the protocol counts that as a sign of life
            proxy=None,
        )
    except (OSError, TimeoutError, websockets.WebSocketException) as problem:
        await _tell(socket, f"the server of generated video cannot be reached ({type(problem).__name__})")
        return
    try:
        await _pass_messages(socket, server)
    finally:
        await server.close()


async def _pass_messages(socket: WebSocket, server: ClientConnection) -> None:
    up, down = asyncio.create_task(_up(socket, server)), asyncio.create_task(_down(socket, server))
    try:
        await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (up, down):
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
    with suppress(RuntimeError, OSError):  # it has left
        if socket.client_state == socket.application_state == WebSocketState.CONNECTED:
            await socket.close(_NORMAL)


async def _up(socket: WebSocket, server: ClientConnection) -> None:
    """From the browser, until either has left."""
    with suppress(WebSocketDisconnect, websockets.ConnectionClosed, RuntimeError):
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            data = message.get("bytes")
            await server.send(message["text"] if data is None else data)


async def _down(socket: WebSocket, server: ClientConnection) -> None:
    """From the server, until either has left."""
    with suppress(WebSocketDisconnect, websockets.ConnectionClosed, RuntimeError, OSError):
        async for message in server:
            if isinstance(message, str):
                await socket.send_text(message)
            else:
                await socket.send_bytes(message)


async def _tell(socket: WebSocket, message: str) -> None:
    with suppress(RuntimeError, OSError, WebSocketDisconnect):
        await socket.send_text(json.dumps({"type": "error", "message": message}))
        await socket.close(_FAILED)

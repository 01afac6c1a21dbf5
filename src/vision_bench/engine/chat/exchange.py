"""One HTTP exchange at the ASGI level: read the body, notice that the client left, send JSON or events."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from vision_bench.wire.sse import DONE, encode_event


class ClientLeft(Exception):
    """The client closed the connection before its body was complete."""


def to_json(value: object) -> bytes:
    """Compact UTF-8 JSON, keys in the order given."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate that the caller sent and an error message repeats
        return json.dumps(value, separators=(",", ":")).encode()


async def read_whole_body(receive: Receive) -> bytes:
    """Every byte of the request's body.

    Raises:
        ClientLeft: the connection closed first.
    """
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


async def until_client_leaves(receive: Receive) -> None:
    """Return when the connection is gone. To be started after the body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def header(scope: Scope, name: bytes) -> str | None:
    """A request header by its lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return None


class Exchange:
    """The answering half. ``started`` once the status line is out: no other status can follow."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def json(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        """A whole JSON answer."""
        await self.whole(status, to_json(body), "application/json", headers)

    async def whole(
        self, status: int, body: bytes, content_type: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """A whole answer."""
        lines = {"content-length": str(len(body)), **({"content-type": content_type} if content_type else {})}
        await self._start(status, lines | (headers or {}))
        await self._send({"type": "http.response.body", "body": body})

    async def half(self, body: object) -> None:
        """The first half of a JSON answer whose length was promised whole. The caller cuts the connection then."""
        data = to_json(body)
        await self._start(200, {"content-length": str(len(data)), "content-type": "application/json"})
        await self._send({"type": "http.response.body", "body": data[: len(data) // 2], "more_body": True})

    async def start_events(self) -> None:
        """Headers of an event stream, sent at once."""
        await self._start(200, {"content-type": "text/event-stream; charset=utf-8"})

    async def event(self, body: dict[str, Any]) -> None:
        """One event with ``body`` as its JSON."""
        data = b"data: " + to_json(body) + b"\n\n"
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def done(self) -> None:
        """``[DONE]`` and the end of the stream. vLLM sends it after an error event too."""
        await self._send({"type": "http.response.body", "body": encode_event(DONE), "more_body": False})

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        self.started = True
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

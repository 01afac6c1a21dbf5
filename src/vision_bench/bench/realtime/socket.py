"""A WebSocket client that knows when each message was there, and the plain requests around a session."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.frames import DATA_OPCODES, Frame

from vision_bench.errors import BrokenStream, ConnectFailed, HttpFailure, InvalidRequest, reason

ROUTE = "/v1/realtime/video"
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
"""``video.start`` repeats the whole request, picture and all, and a chunk may be large: 1 MiB is not enough."""
QUEUED_MESSAGES = 256
CLOSE_SECONDS = 1.0
OPEN_SECONDS = 30.0
ASK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RealtimeAddress:
    """Where sessions go."""

    url: str
    """``ws://`` or ``wss://``, with its path."""
    http_root: str
    """The same server's ``http://`` address, without a path."""


def read_address(url: str) -> RealtimeAddress:
    """``ws://host:port``, with or without the route.

    Raises:
        InvalidRequest: no such address.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
        fault = "" if parts.scheme in ("ws", "wss") else "it starts with neither ws:// nor wss://"
        fault = fault or ("" if parts.hostname and parts.username is None else "it names no host, or a user")
    except ValueError as problem:
        fault = str(problem)
    if fault:
        raise InvalidRequest(
            f"{url[:200]!r} is no address of a realtime video server ({fault}); give one such as"
            f" ws://127.0.0.1:8100{ROUTE}"
        )
    path = parts.path.rstrip("/") or ROUTE
    scheme = "http" if parts.scheme == "ws" else "https"
    return RealtimeAddress(
        urlunsplit((parts.scheme, parts.netloc, path, "", "")), urlunsplit((scheme, parts.netloc, "", "", ""))
    )


class StampedConnection(ClientConnection):
    """Notes the moment at which the last bytes of each message came off the socket.

    ``recv`` gives a message when its task has its turn, which under load is later.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read_ns = 0
        self._stamps: deque[int] = deque()

    def data_received(self, data: bytes) -> None:
        self._read_ns = time.monotonic_ns()
        super().data_received(data)

    def process_event(self, event: Any) -> None:
        if isinstance(event, Frame) and event.opcode in DATA_OPCODES and event.fin:
            self._stamps.append(self._read_ns)
        super().process_event(event)

    async def receive(self) -> tuple[str | bytes, int]:
        """The next message, and when it was there, monotonic ns.

        Raises:
            ConnectionClosed: there is none.
        """
        message = await self.recv()
        return message, self._stamps.popleft()


class _Direct(connect):
    """Follows no redirect: another server is not the one that was to be measured."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


@asynccontextmanager
async def open_socket(
    address: RealtimeAddress, *, api_key: str | None, open_seconds: float = OPEN_SECONDS
) -> AsyncIterator[StampedConnection]:
    """An open connection; dropped on the way out, because the protocol's own end has no close frame.

    Raises:
        ConnectFailed: nobody answers, or not in time.
        HttpFailure: the server refused with a status.
        BrokenStream: what answered is no WebSocket server.
    """
    connecting = _Direct(
        address.url,
        additional_headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
        user_agent_header="vision-bench",
        compression=None,  # video does not shrink, and inflating it would be in every time
        proxy=None,
        open_timeout=open_seconds,
        ping_interval=None,  # session.ping is the protocol's own
        close_timeout=CLOSE_SECONDS,
        max_size=MAX_MESSAGE_BYTES,
        max_queue=QUEUED_MESSAGES,
        create_connection=StampedConnection,
    )
    try:
        connection = await connecting
    except InvalidStatus as refused:
        raise HttpFailure(refused.response.status_code, "the WebSocket was refused") from refused
    except TimeoutError as problem:
        raise ConnectFailed(f"{address.url} did not open within {open_seconds:g} s") from problem
    except OSError as problem:
        raise ConnectFailed(f"{address.url} cannot be reached ({reason(problem)}); is the server up?") from problem
    except (WebSocketException, EOFError) as problem:
        raise BrokenStream(f"{address.url} is no WebSocket server ({type(problem).__name__})") from problem
    assert isinstance(connection, StampedConnection)  # noqa: S101 - what create_connection names
    try:
        yield connection
    finally:
        connection.transport.abort()


async def check_server(address: RealtimeAddress, *, api_key: str | None) -> list[str] | None:
    """Whether sessions can be opened; gives the models that the server lists, None where it lists none.

    Raises:
        ConnectFailed: no session can be opened.
        InvalidRequest: it wants a key, or another one.
    """
    try:
        async with open_socket(address, api_key=api_key):
            pass
    except HttpFailure as refused:
        if refused.status == 401:
            raise InvalidRequest(f"{address.url} answered 401; give {_key_wanted(api_key)}") from refused
        if refused.status == 403:  # some servers' word for a WebSocket route that they do not have
            raise InvalidRequest(
                f"{address.url} answered 403: it has no such route (usual is {ROUTE}), or it wants"
                f" {_key_wanted(api_key)}"
            ) from refused
        raise ConnectFailed(f"{address.url} refused the WebSocket with HTTP {refused.status}") from refused
    except BrokenStream as problem:
        raise ConnectFailed(str(problem)) from problem
    body = await _get(address, "/v1/models", api_key)
    entries = body.get("data") if isinstance(body, dict) else None
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [name for name in names if isinstance(name, str)] or None


def _key_wanted(api_key: str | None) -> str:
    return "another --api-key" if api_key else "--api-key"


async def read_truth_lines(address: RealtimeAddress, *, api_key: str | None) -> str | None:
    """What a reference server says it did (``GET /truth``); None of any other server."""
    async with _client(address, api_key) as client:
        try:
            answer = await client.get("/truth")
        except httpx.HTTPError:
            return None
    return answer.text if answer.status_code == 200 else None


async def _get(address: RealtimeAddress, path: str, api_key: str | None) -> Any:
    async with _client(address, api_key) as client:
        try:
            return (await client.get(path)).json()
        except (httpx.HTTPError, ValueError):
            return None


def _client(address: RealtimeAddress, api_key: str | None) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx.AsyncClient(base_url=address.http_root, headers=headers, timeout=ASK_SECONDS, trust_env=False)


async def wait_closed(connection: StampedConnection) -> int:
    """Wait shortly for the other side to end the connection; its close code, 1006 where none came."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.wait_closed()
    except TimeoutError:
        pass
    return connection.close_code or 1006

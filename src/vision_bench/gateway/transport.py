"""The one place that opens sockets to vLLM. Everything above is tested with a function in its stead."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, Self
from urllib.parse import urlsplit

from vision_bench.errors import BrokenStream, ConnectFailed, reason
from vision_bench.gateway.connection import Buffer, Connection

Payload = Buffer | Sequence[Buffer]
"""A body, whole or in pieces."""

KEEPALIVE_SECONDS = 3.0
"""vLLM closes an idle connection after 5 s; ours must be the shorter patience, or calls race with its goodbye."""


class TransportAnswer(Protocol):
    """An answer whose status and headers have come and whose body is on its way."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in Title-Case."""
        ...

    async def read_some(self) -> bytes:
        """The bytes that are there, waiting for the first; ``b""`` at the end.

        Raises:
            BrokenStream: the connection broke before the end.
        """
        ...


class Transport(Protocol):
    """Speaks with one server. Paths are those behind its base address, such as ``/chat/completions``.

    Leaving a block before the end of the answer closes the connection.

    Both methods raise, on entering:
        ConnectFailed: nobody answers at the address.
        BrokenStream: the connection broke before the headers of the answer.
    """

    def post(
        self, path: str, body: Payload, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[TransportAnswer]:
        """Send a body."""
        ...

    def get(self, path: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[TransportAnswer]:
        """Ask for a document."""
        ...

    def head_start(self, path: str, size_bytes: int, headers: Mapping[str, str]) -> HeadStart:
        """A ``post`` that can be sent while its body of ``size_bytes`` comes. ``close`` must follow."""
        ...


class HeadStart(Protocol):
    """A request that goes out while its body comes, all but the last piece of it: until that one it is no call."""

    def send_but_last(self, pieces: Sequence[Buffer]) -> None:
        """Send what was not sent yet of ``pieces``, which is all that has come, but never the last of them."""
        ...

    def call(self, body: Sequence[Buffer]) -> AbstractAsyncContextManager[TransportAnswer]:
        """``Transport.post``, of what is left to send of ``body``, which is all pieces."""
        ...

    def close(self) -> None:
        """Nothing more is sent ahead, and what was is broken off: a ``call`` that follows sends the whole body. After
        ``call`` nothing."""
        ...


class HttpTransport:
    """``Transport`` over kept-alive connections, as many as there are calls. Made inside the running event loop.

    ``base_url`` is vLLM's /v1 endpoint, without a slash at its end.

    Bytes go both ways as they are: nothing is decompressed, no redirect is followed, no cookie kept, no proxy
    taken from the environment.

    Attributes:
        retries: how often a call was sent again because its kept-alive connection had gone stale.
    """

    def __init__(self, base_url: str, *, connect_timeout_seconds: float) -> None:
        parts = urlsplit(base_url)
        is_secure = parts.scheme == "https"
        self._base_url = base_url
        self._connect_timeout_seconds = connect_timeout_seconds
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if is_secure else 80)
        self._ssl = ssl.create_default_context() if is_secure else None
        self._base_path = parts.path
        self._common_head = (
            f" HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: vision-bench-gateway\r\n"
            "Accept: */*\r\nAccept-Encoding: identity\r\n"
        )
        self._loop = asyncio.get_running_loop()
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self.retries = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in self._open:
            connection.close()
        await asyncio.sleep(0)  # transports close their sockets in the loop's next turn

    def post(self, path: str, body: Payload, headers: Mapping[str, str]) -> _Call:
        """See ``Transport.post``."""
        size_bytes = size_of(body)
        head = self._head("POST", path, headers, f"Content-Length: {size_bytes}\r\n")
        return _Call(self, head, body, size_bytes)

    def get(self, path: str, headers: Mapping[str, str]) -> _Call:
        """See ``Transport.get``."""
        return _Call(self, self._head("GET", path, headers, ""), b"", 0)

    def head_start(self, path: str, size_bytes: int, headers: Mapping[str, str]) -> _HeadStart:
        """See ``Transport.head_start``. Only over a connection that lies ready: making one is not waited for."""
        return _HeadStart(self, self._head("POST", path, headers, f"Content-Length: {size_bytes}\r\n"), size_bytes)

    async def open(self, head: bytes, body: Payload, size_bytes: int, begun: _Begun | None = None) -> Connection:
        """Send a request, or the rest of one that is ``begun``, and wait for the head of its answer; ``give_back``
        must follow. ``post`` does both."""
        connection = begun.connection if begun is not None else self.take_idle() or await self._connect()
        try:
            if begun is None:
                connection.send(head, body, size_bytes)
            else:
                connection.send_more(begun.rest)
            await connection.wait_for_head()
        except BaseException as problem:
            self.drop(connection)
            # A kept-alive connection may have been closed just as we wrote to it. No byte of an answer came, so one
            # more try over a new connection; a connection that was new says something about the server.
            if not isinstance(problem, BrokenStream) or not connection.is_reused or connection.has_answered:
                raise
        else:
            return connection
        self.retries += 1
        connection = await self._connect()
        connection.is_single_use = True  # so that the next call's new connection is new indeed
        try:
            connection.send(head, body, size_bytes)
            await connection.wait_for_head()
        except BaseException:
            self.drop(connection)
            raise
        return connection

    def give_back(self, connection: Connection) -> None:
        """The call is over: keep the connection for another one, or close it."""
        now = self._loop.time()
        if not connection.park(now):
            self.drop(connection)
            return
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(KEEPALIVE_SECONDS, self._drop_stale)

    def _head(self, method: str, path: str, headers: Mapping[str, str], length: str) -> bytes:
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers):
            raise ValueError("a header holds a line end")
        return f"{method} {self._base_path}{path}{self._common_head}{lines}{length}\r\n".encode("latin-1")

    def take_idle(self) -> Connection | None:
        """A connection that lies ready; None: there is none."""
        fresh_since = self._loop.time() - KEEPALIVE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed and connection.idle_since > fresh_since:
                return connection
            self.drop(connection)
        return None

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(self._connect_timeout_seconds):
                _, connection = await self._loop.create_connection(Connection, self._host, self._port, ssl=self._ssl)
        except OSError as problem:  # TimeoutError is one
            if problem.errno in (errno.EMFILE, errno.ENFILE):
                raise ConnectFailed(
                    f"the gateway has no file left for a connection to {self._base_url} ({reason(problem)}); "
                    "raise the limit on open files (ulimit -n), or send fewer requests at once"
                ) from problem
            raise ConnectFailed(
                f"vLLM cannot be reached at {self._base_url} ({reason(problem)}); "
                "is it running, is VLLM_BASE_URL right?"
            ) from problem
        self._open.add(connection)
        return connection

    def _drop_stale(self) -> None:
        """Close what nobody wanted: those idle longest lie at the front."""
        self._sweep = None
        fresh_since = self._loop.time() - KEEPALIVE_SECONDS
        while self._idle and (self._idle[0].is_closed or self._idle[0].idle_since <= fresh_since):
            self.drop(self._idle.pop(0))
        if self._idle:
            wait_seconds = self._idle[0].idle_since - fresh_since
            self._sweep = self._loop.call_later(wait_seconds, self._drop_stale)

    def drop(self, connection: Connection) -> None:
        """Close a connection, whatever it is doing."""
        connection.close()
        self._open.discard(connection)


class _Call:
    # A class, for it costs half of what a generator does.
    __slots__ = ("_begun", "_body", "_connection", "_head", "_size_bytes", "_transport")

    def __init__(
        self, transport: HttpTransport, head: bytes, body: Payload, size_bytes: int, begun: _Begun | None = None
    ) -> None:
        self._transport = transport
        self._head = head
        self._body = body
        self._size_bytes = size_bytes
        self._begun = begun

    async def __aenter__(self) -> Connection:
        self._connection = await self._transport.open(self._head, self._body, self._size_bytes, self._begun)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        self._transport.give_back(self._connection)


class _Begun(NamedTuple):
    """A connection on which a request was begun, and what is left to send."""

    connection: Connection
    rest: Sequence[Buffer]


class _HeadStart:
    __slots__ = ("_connection", "_head", "_is_over", "_sent", "_size_bytes", "_transport")

    def __init__(self, transport: HttpTransport, head: bytes, size_bytes: int) -> None:
        self._transport = transport
        self._connection: Connection | None = None
        self._head = head
        self._size_bytes = size_bytes
        self._sent = 0  # pieces
        self._is_over = False

    def send_but_last(self, pieces: Sequence[Buffer]) -> None:
        new = pieces[self._sent : -1]
        if self._is_over or not new:
            return
        if self._connection is not None:
            self._connection.send_more(new)
        elif (connection := self._transport.take_idle()) is not None:
            self._connection = connection
            connection.send(self._head, new, self._size_bytes)
        else:
            return
        self._sent += len(new)

    def call(self, body: Sequence[Buffer]) -> _Call:
        connection, self._connection = self._connection, None
        begun = None if connection is None else _Begun(connection, body[self._sent :])
        return _Call(self._transport, self._head, body, self._size_bytes, begun)

    def close(self) -> None:
        self._is_over = True
        if self._connection is not None:
            self._transport.drop(self._connection)
            self._connection = None


def size_of(body: Payload) -> int:
    """Bytes of a body."""
    if isinstance(body, bytes | bytearray):
        return len(body)
    if isinstance(body, memoryview):
        return body.nbytes
    return sum(len(piece) for piece in body)

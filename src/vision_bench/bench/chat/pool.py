"""The connections to one server: kept alive, as many as there are requests out at once, resolved once."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Self

from vision_bench.bench.chat.connection import Connection
from vision_bench.errors import ConnectFailed, reason

KEEPALIVE_SECONDS = 3.0
"""vLLM closes an idle connection after 5 s. Nothing here is sent twice, so ours must be the shorter patience."""
REST_SECONDS = 0.05
"""How long what follows ``[DONE]`` may take before the connection is given up."""


class Pool:
    """Opens connections and keeps the idle ones. Made inside the running event loop.

    Attributes:
        opened: connections made so far.
    """

    def __init__(self, host: str, port: int, *, is_secure: bool, connect_timeout_seconds: float = 10.0) -> None:
        self._host = host
        self._port = port
        self._ssl = ssl.create_default_context() if is_secure else None
        self._connect_timeout_seconds = connect_timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._place: tuple[str, int] | None = None
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self.opened = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in tuple(self._open):
            connection.on_rest = None
            connection.close()
        await asyncio.sleep(0)  # transports close their sockets in the loop's next turn

    async def check(self) -> None:
        """Find the address at which the server answers, so that no request waits for a name.

        Raises:
            ConnectFailed: nobody answers at any address of the name.
        """
        try:
            places = await self._loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError as problem:
            raise ConnectFailed(f"{self._host} is no host that this machine knows ({problem})") from problem
        failed: ConnectFailed | None = None
        for *_, address in places:
            self._place = (str(address[0]), self._port)
            try:
                self.give_back(await self.connect(), is_unused=True)
                return
            except ConnectFailed as problem:
                failed = failed or problem
        raise failed or ConnectFailed(f"{self._host} has no address")

    def take(self) -> Connection | None:
        """An idle connection, the one used last."""
        fresh_since = self._loop.time() - KEEPALIVE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed and connection.idle_since > fresh_since:
                return connection
            self.discard(connection)
        return None

    def give_back(self, connection: Connection, *, is_unused: bool = False) -> None:
        """A request is over. Its connection is kept, given a moment for the rest of its answer, or closed."""
        if is_unused or connection.can_be_reused:
            connection.park()
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
        elif connection.is_closed or connection.is_whole or connection.problem is not None:
            self.discard(connection)
        else:
            timer = self._loop.call_later(REST_SECONDS, self.discard, connection)

            def over() -> None:
                timer.cancel()
                self.give_back(connection)

            connection.on_rest = over

    async def connect(self) -> Connection:
        """A new connection.

        Raises:
            ConnectFailed: it was refused, or not accepted in time.
        """
        host, port = self._place or (self._host, self._port)
        secure: dict[str, Any] = {"ssl": self._ssl, "server_hostname": self._host} if self._ssl else {}
        try:
            async with asyncio.timeout(self._connect_timeout_seconds):
                _, connection = await self._loop.create_connection(Connection, host, port, **secure)
        except OSError as problem:  # TimeoutError is one
            raise ConnectFailed(
                f"nobody answers at {self._host}:{self._port} ({reason(problem)}); is the server running?"
            ) from problem
        self.opened += 1
        self._open.add(connection)
        return connection

    def discard(self, connection: Connection) -> None:
        """Close a connection for good: of a request that was given up, so that the server sees it."""
        connection.on_rest = None
        connection.close()
        self._open.discard(connection)

"""The one place that opens sockets to vLLM. Everything above is tested with a function in its stead."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any, Protocol, Self

import aiohttp
from aiohttp.connector import Connection

from vision_bench.errors import BrokenStream, ConnectFailed, UpstreamError

Payload = bytes | bytearray | memoryview

SLICE_BYTES = 256 * 1024
"""Bodies above 1 MiB go out in pieces of this size, so that one big clip does not hold up the event loop."""

KEEPALIVE_SECONDS = 3.0
"""vLLM closes an idle connection after 5 s; ours must be the shorter patience, or calls race with its goodbye."""


class TransportAnswer(Protocol):
    """An answer whose status and headers have come and whose body is on its way."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read_some(self) -> bytes:
        """The bytes that are there, waiting for the first; ``b""`` at the end.

        Raises:
            BrokenStream: the connection broke before the end.
        """
        ...


class Transport(Protocol):
    """Posts a body to one address."""

    def post(self, body: Payload, headers: Mapping[str, str]) -> AbstractAsyncContextManager[TransportAnswer]:
        """Leaving the block before the end of the answer closes the connection.

        Raises:
            ConnectFailed: nobody answers at the address.
            BrokenStream: the connection broke before the headers of the answer.
        """
        ...


class AiohttpTransport:
    """``Transport`` over a pool of kept-alive connections. Made inside the running event loop.

    Bytes go both ways as they are: nothing is decompressed, no redirect is followed, no cookie kept, no proxy
    taken from the environment.
    """

    def __init__(self, url: str, *, connect_timeout_seconds: float) -> None:
        self._url = url
        self._connect_timeout_seconds = connect_timeout_seconds
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        self._pooled = self._session(aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS), [trace])
        self._fresh = self._session(aiohttp.TCPConnector(limit=0, force_close=True), [])

    def _session(self, connector: aiohttp.TCPConnector, traces: list[aiohttp.TraceConfig]) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": "vision-bench-gateway", "Accept-Encoding": "identity"},
            response_class=_Response,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_seconds),
            trace_configs=traces,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pooled.close()
        await self._fresh.close()

    @asynccontextmanager
    async def post(self, body: Payload, headers: Mapping[str, str]) -> AsyncIterator[TransportAnswer]:
        """See ``Transport.post``."""
        response = await self._open(body, headers)
        try:
            yield _AiohttpAnswer(response)
        finally:
            response.close()  # a connection whose answer was read to the end is back in the pool already

    async def _open(self, body: Payload, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        use = SimpleNamespace(reused=False)
        try:
            return await self._send(self._pooled, body, headers, trace_request_ctx=use)
        except aiohttp.ClientConnectorError as problem:
            raise _connect_failed(self._url, problem) from problem
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as problem:
            # A kept-alive connection may have been closed just as we wrote to it. No byte of an answer came, so
            # one more try over a new connection; a connection that was new says something about the server.
            if not use.reused:
                raise _broken(problem) from problem
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise _translate(self._url, problem) from problem
        try:
            return await self._send(self._fresh, body, headers)
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise _translate(self._url, problem) from problem

    async def _send(
        self, session: aiohttp.ClientSession, body: Payload, headers: Mapping[str, str], **options: Any
    ) -> aiohttp.ClientResponse:
        size = memoryview(body).nbytes
        return await session.post(
            self._url,
            data=body if size <= 4 * SLICE_BYTES else _slices(body),
            headers={**headers, "Content-Length": str(size)},
            allow_redirects=False,
            **options,
        )


class _Response(aiohttp.ClientResponse):
    """An answer whose connection is not used again after a 500: vLLM closes it then without saying so."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        protocol = connection.protocol
        await super().start(connection)
        if self.status >= 500 and protocol is not None:
            if self.connection is None:  # the answer was so short that its connection is back in the pool already
                protocol.close()
            else:
                protocol.force_close()
        return self


class _AiohttpAnswer:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read_some(self) -> bytes:
        try:
            return await self._response.content.readany()
        except aiohttp.ClientError as problem:
            raise BrokenStream(f"vLLM broke off in the middle of its answer ({_reason(problem)})") from problem


async def _note_reuse(_session: object, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.reused = True


async def _slices(body: Payload) -> AsyncIterator[memoryview]:
    view = memoryview(body)
    for start in range(0, len(view), SLICE_BYTES):
        yield view[start : start + SLICE_BYTES]


def _translate(url: str, problem: Exception) -> UpstreamError:
    if isinstance(problem, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError | TimeoutError):
        return _connect_failed(url, problem)
    return _broken(problem)


def _connect_failed(url: str, problem: Exception) -> ConnectFailed:
    return ConnectFailed(
        f"vLLM cannot be reached at {url} ({_reason(problem)}); is it running, is VLLM_BASE_URL right?"
    )


def _broken(problem: Exception) -> BrokenStream:
    return BrokenStream(f"vLLM closed the connection before it answered ({_reason(problem)})")


def _reason(problem: Exception) -> str:
    """The system's word for it: aiohttp's own text repeats the address and its TLS settings."""
    number = problem.errno if isinstance(problem, OSError) else None
    return errno.errorcode.get(number, f"error {number}") if number else type(problem).__name__

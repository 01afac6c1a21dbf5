"""A real gateway on a loopback port, in the test's own event loop, so that a test can look at its permits."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from tests.integration.embedded_server import EmbeddedServer
from tests.integration.stub_upstream import StubUpstream

from vision_bench.gateway.admission import Admission
from vision_bench.gateway.application import create_app
from vision_bench.gateway.protocol import GuardedProtocol
from vision_bench.gateway.settings import Settings

BODY: dict[str, Any] = {"model": "qwen", "messages": [{"role": "user", "content": "안녕?"}]}


@dataclass(slots=True)
class Rig:
    """A running gateway: its address, a client that speaks to it, its application."""

    url: str
    port: int
    app: FastAPI
    client: httpx.AsyncClient
    server: uvicorn.Server

    @property
    def admission(self) -> Admission:
        admission: Admission = self.app.state.admission
        return admission

    async def batch(self, items: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
        """The lines of a batch, in the order of arrival."""
        answer = await self.client.post("/chat/batch", json={"items": items}, **options)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.content.split(b"\n") if line]

    async def dropped_call(
        self, path: str, body: Any, *, after_seconds: float | None = None, after_bytes: bytes | None = None
    ) -> bytes:
        """Send a request and close the socket after a while, or once ``after_bytes`` has arrived."""
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}"
        writer.write(f"{head}\r\n\r\n".encode() + payload)
        seen = b""
        if after_seconds is not None:
            await asyncio.sleep(after_seconds)
        while after_bytes is not None and after_bytes not in seen:
            data = await reader.read(65536)
            assert data, f"the gateway closed before {after_bytes!r}: {seen[-500:]!r}"
            seen += data
        writer.transport.abort()
        return seen


def http_client(base_url: str, *, timeout_seconds: float = 60.0) -> httpx.AsyncClient:
    """A client for plain http on loopback: it loads no certificates, which would take longer than most tests."""
    return httpx.AsyncClient(base_url=base_url, timeout=timeout_seconds, verify=False, trust_env=False)  # noqa: S501


@asynccontextmanager
async def gateway(
    upstream: StubUpstream | str, *, http: Any = GuardedProtocol, around: Any = None, **settings: Any
) -> AsyncIterator[Rig]:
    """Run a gateway in front of ``upstream``; ``settings`` by their names in lower case.

    ``http="auto"`` is what uvicorn's own command takes; ``around`` makes another application of ours.
    """
    base_url = upstream if isinstance(upstream, str) else upstream.base_url
    app = create_app(Settings(_env_file=None, vllm_base_url=base_url, **settings))
    served = around(app) if around else app
    server = EmbeddedServer(
        uvicorn.Config(served, http=http, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    )
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port = listener.getsockname()[1]
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started or serving.done())
        url = f"http://127.0.0.1:{port}"
        try:
            async with http_client(url) as client:
                yield Rig(url, port, app, client, server)
        finally:
            server.should_exit = True
            await serving


class Caller:
    """A raw connection that sends as little as it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Send exactly this."""
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Status, head and body of an answer with a length or in chunks."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        if length:
            body = await self._reader.readexactly(int(length))
        else:
            body = await self._reader.readuntil(b"0\r\n\r\n")
        return int(head.split()[1]), head, body


@asynccontextmanager
async def caller(rig: Rig) -> AsyncIterator[Caller]:
    """A raw connection to the gateway, cut at the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    try:
        yield Caller(reader, writer)
    finally:
        writer.transport.abort()


def upload_head(path: str, size_bytes: int) -> bytes:
    """The head of a request with a body of that length."""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size_bytes}\r\n\r\n".encode()


async def until(condition: Callable[[], object], *, within_seconds: float = 10.0) -> None:
    """Wait for ``condition``; fail loudly when it does not come true in time."""
    async with asyncio.timeout(within_seconds):
        while not condition():
            await asyncio.sleep(0.005)


def items(count: int, **extra: Any) -> list[dict[str, Any]]:
    """Batch items ``clip-0`` to ``clip-<count - 1>``."""
    return [{"id": f"clip-{index}", "body": {**BODY, "seed": index, **extra}} for index in range(count)]

"""An embedded engine on a loopback port, in the test's own event loop."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from tests.integration.embedded_server import EmbeddedServer

from vision_bench.engine.chat.declared.model import DeclaredModel
from vision_bench.engine.chat.declared.settings import DeclaredSettings, Latencies
from vision_bench.engine.chat.model import ChatModel
from vision_bench.engine.chat.server import create_engine
from vision_bench.engine.chat.settings import EngineSettings
from vision_bench.engine.listener import listen
from vision_bench.wire.sse import DONE, EventParser

CHAT = "/v1/chat/completions"
ENGINE_COMMAND = (sys.executable, "-m", "vision_bench.cli", "engine")
INSTANT = Latencies(preprocess_ms=0, encoder_ms=0, prefill_ms=0, decode_ms=0)
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}


@dataclass(slots=True)
class EngineRig:
    """A running engine: its root URL, a client for it, its server."""

    url: str
    port: int
    client: httpx.AsyncClient
    server: uvicorn.Server

    async def ask(self, body: dict[str, Any], **options: Any) -> httpx.Response:
        """Post a chat body."""
        return await self.client.post(CHAT, json=body, **options)

    async def truth(self) -> list[dict[str, Any]]:
        """What the engine says it kept."""
        return [json.loads(line) for line in (await self.client.get("/truth")).text.splitlines()]

    async def gauge(self, name: str) -> float:
        """One number of the metrics page: the first line whose name is ``name``."""
        page = (await self.client.get("/metrics")).text
        return next(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name))

    async def shows(self, name: str, wanted: float, *, within_seconds: float = 5.0) -> bool:
        """Whether the metric comes to ``wanted`` in time; asked again every few milliseconds."""
        for _ in range(int(within_seconds / 0.01)):
            if await self.gauge(name) == wanted:
                return True
            await asyncio.sleep(0.01)
        return False


@asynccontextmanager
async def serving(
    model: ChatModel,
    settings: EngineSettings | None = None,
    *,
    knows_model: Callable[[str], bool] = lambda _: False,
) -> AsyncIterator[EngineRig]:
    """The engine, from its start to its end."""
    listener = listen("127.0.0.1", 0)
    app = create_engine(model, settings=settings, knows_model=knows_model)
    server = EmbeddedServer(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=0))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
            yield EngineRig(url, port, client, server)
    finally:
        server.should_exit = True
        await task


@contextmanager
def serving_in_thread(model: ChatModel, settings: EngineSettings) -> Iterator[str]:
    """An engine for many tests, each with an event loop of its own; gives its root URL."""
    listener = listen("127.0.0.1", 0)
    server = EmbeddedServer(uvicorn.Config(create_engine(model, settings=settings), log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@asynccontextmanager
async def declared(
    engine: EngineSettings | None = None, *, latencies: Latencies = INSTANT, **options: Any
) -> AsyncIterator[EngineRig]:
    """An engine that declares ``latencies`` (none by default); ``options`` are those of ``DeclaredSettings``."""
    engine = engine or EngineSettings()
    settings = DeclaredSettings(latencies=latencies, served_model_names=engine.served_model_names, **options)
    model = DeclaredModel(settings)
    async with serving(model, engine, knows_model=model.knows) as rig:
        yield rig


@contextmanager
def engine_process(*flags: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A declared engine in a process of its own, on a free port, ready: its root URL and the process."""
    command = [*ENGINE_COMMAND, "--model", "declared", "--port", "0", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"(http://\S+)/v1", process.stderr.readline())
            assert found, "the engine did not say where it answers"
            with httpx.Client(base_url=found[1], trust_env=False) as client:
                for _ in range(1000):
                    with suppress(httpx.ConnectError):
                        client.get("/health")
                        break
                    time.sleep(0.01)
            yield found[1], process
        finally:
            process.kill()


def events(body: bytes) -> list[Any]:
    """The JSON of each event of a stream; ``[DONE]`` as that string."""
    parser = EventParser()
    found = [*parser.feed(body), *parser.close()]
    return [event.data if event.data == DONE else json.loads(event.data) for event in found]

"""Clients that leave and servers that die: what real vLLM does, and what the gateway makes of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time

import httpx
import pytest
from tests.integration.gateway_rig import Rig, gateway, until
from tests.vllm import bodies
from tests.vllm.server import TRUST, VllmServer, VllmServers
from tests.vllm.streams import streamed_until

from vision_bench.client.gateway import GatewayClient
from vision_bench.errors import BrokenStream
from vision_bench.wire.sse import DONE

RUNNING = "vllm:num_requests_running"
LONG = bodies.ask(max_tokens=4000)
"""More than ten seconds of answer, so that an end within a few is no coincidence."""
FAILS_WITH_500 = bodies.ask(bodies.video("file:///none.mp4"))


@pytest.fixture
def server(vllm_server: VllmServers) -> VllmServer:
    """One for each test: some of them leave it dead."""
    return vllm_server.get(TRUST)


async def running_falls_to(count: int, server: VllmServer, *, within_seconds: float) -> float:
    """Wait until vLLM runs ``count`` requests; how long that took."""
    began = time.monotonic()
    while await asyncio.to_thread(server.metric, RUNNING) != count:
        assert time.monotonic() - began < within_seconds, f"{RUNNING} is not {count} after {within_seconds} s"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


def in_use(rig: Rig) -> int:
    return rig.admission.in_use


async def test_leaving_a_stream_stops_the_engine(server: VllmServer) -> None:
    """A client that drops a stream stops vLLM's work on it, and its permit is free again."""
    async with gateway(server.base_url) as rig:
        await rig.dropped_call("/chat", {**LONG, "stream": True}, after_bytes=b'"content":"')
        await running_falls_to(0, server, within_seconds=3)
        await until(lambda: in_use(rig) == 0, within_seconds=1)


async def test_leaving_a_plain_call_stops_the_engine(server: VllmServer) -> None:
    """So does a client that drops a call before a byte of the answer has come."""
    async with gateway(server.base_url) as rig:
        call = asyncio.create_task(rig.dropped_call("/chat", LONG, after_seconds=2))
        await running_falls_to(1, server, within_seconds=2)
        await call
        await running_falls_to(0, server, within_seconds=3)
        await until(lambda: in_use(rig) == 0, within_seconds=1)


async def test_leaving_a_batch_stops_all_of_it(server: VllmServer) -> None:
    """A dropped batch stops the items that run and never starts those that wait."""
    async with gateway(server.base_url, vllm_concurrency=2) as rig:
        started = await asyncio.to_thread(server.metric, "vllm:prompt_tokens_total")
        items = [{"id": str(n), "body": LONG} for n in range(6)]
        call = asyncio.create_task(rig.dropped_call("/chat/batch", {"items": items}, after_seconds=3))
        await running_falls_to(2, server, within_seconds=3)
        two = await asyncio.to_thread(server.metric, "vllm:prompt_tokens_total") - started
        await call
        await running_falls_to(0, server, within_seconds=3)
        await until(lambda: in_use(rig) == 0, within_seconds=1)
        assert await asyncio.to_thread(server.metric, "vllm:prompt_tokens_total") - started == two > 0


async def test_nobody_inherits_the_reset_after_a_500(server: VllmServer) -> None:
    """vLLM drops the connection after a 500 without saying so; the gateway's next caller does not notice."""
    async with gateway(server.base_url, vllm_concurrency=1) as rig:
        for _ in range(6):
            failed = await rig.client.post("/chat", json=FAILS_WITH_500)
            assert failed.status_code == 500
            assert failed.json()["error"]["message"].startswith("Cannot load local files")
            good = await rig.client.post("/chat", json=bodies.ask(max_tokens=2))
            assert good.status_code == 200, good.text
        items = [{"id": str(n), "body": bodies.ask(max_tokens=2) if n % 2 else FAILS_WITH_500} for n in range(12)]
        statuses = {line["id"]: line["status"] for line in await rig.batch(items)}
        assert statuses == {str(n): 200 if n % 2 else 500 for n in range(12)}


async def test_a_plain_pool_does_inherit_it(server: VllmServer) -> None:
    """The trap itself: a client that reuses connections meets a reset or a closed connection after a 500."""
    limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
    broken = 0
    async with httpx.AsyncClient(base_url=server.base_url, limits=limits, timeout=30, trust_env=False) as pooled:
        for _ in range(6):
            assert (await pooled.post("/chat/completions", json=FAILS_WITH_500)).status_code == 500
            try:
                await pooled.post("/chat/completions", json=bodies.ask(max_tokens=2))
            except (httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError):
                broken += 1
    assert broken > 0


def assert_ends_in_error(events: list[str]) -> None:
    """The last event but one is an error, and [DONE] stands behind it all the same."""
    assert events[-1] == DONE
    error = json.loads(events[-2])["error"]
    assert (error["code"], error["type"]) == (500, "InternalServerError")
    assert error["message"]


async def test_sigterm_in_a_stream(server: VllmServer) -> None:
    """SIGTERM ends a stream with an error event and [DONE]; after that nobody listens, and the gateway says 502."""
    async with gateway(server.base_url) as rig:
        events = await streamed_until(rig, server.process.terminate, LONG)
        assert_ends_in_error(events)
        assert await asyncio.to_thread(server.process.wait, 30) is not None
        gone = await rig.client.post("/chat", json=bodies.ask())
        assert gone.status_code == 502
        assert "cannot be reached" in gone.json()["error"]["message"]
        assert in_use(rig) == 0


async def test_worker_killed(server: VllmServer) -> None:
    """A dead worker ends streams, single calls and batch items with an error each, then the whole server."""
    async with gateway(server.base_url) as rig, GatewayClient(rig.url) as client:
        worker = next(pid for name, pid in server.children().items() if name.startswith("VLLM::Worker"))
        batch = asyncio.create_task(rig.batch([{"id": str(n), "body": LONG} for n in range(2)]))
        await running_falls_to(2, server, within_seconds=5)
        async with client.stream_chat(LONG) as stream:
            with pytest.raises(BrokenStream, match=r"error inside the stream: .*EngineCore"):
                async for _ in stream:
                    if worker:
                        os.kill(worker, signal.SIGKILL)
                        worker = 0
        assert stream.reply.text
        lines = await batch
        assert len(lines) == 2
        for line in lines:
            assert line["status"] >= 500
            assert line["error"]
        assert await asyncio.to_thread(server.process.wait, 30) is not None
        await until(lambda: in_use(rig) == 0, within_seconds=1)

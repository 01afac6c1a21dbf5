"""Clients that leave and servers that die: what real vLLM does, and what the gateway makes of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import Any

import pytest
from tests.integration.gateway_rig import gateway, until
from tests.vllm import bodies
from tests.vllm.server import TRUST, VllmServer, VllmServers
from tests.vllm.streams import streamed_until

from vision_bench.client.gateway import GatewayClient
from vision_bench.errors import BrokenStream
from vision_bench.wire.chat_stream import StreamReader
from vision_bench.wire.sse import DONE, encode_event

RUNNING = "vllm:num_requests_running"
LONG = bodies.ask(max_tokens=4000)
"""More than ten seconds of answer, so that an end within a few is no coincidence."""
SILENCE_ENDS_SECONDS = 40.0
"""Shorter than the client's own patience, longer than vLLM needs to notice that a process of it has gone."""
FAILS_WITH_500 = bodies.ask(bodies.video("file:///none.mp4"))


@pytest.fixture
def server(vllm_server: VllmServers) -> VllmServer:
    """One for each test: some of them leave it dead."""
    return vllm_server.get(TRUST)


async def running_becomes(count: int, server: VllmServer, *, within_seconds: float) -> float:
    """Wait until vLLM runs ``count`` requests; how long that took."""
    began = time.monotonic()
    while await asyncio.to_thread(server.metric, RUNNING) != count:
        assert time.monotonic() - began < within_seconds, f"{RUNNING} is not {count} after {within_seconds} s"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def test_leaving_a_stream_stops_the_engine(server: VllmServer) -> None:
    """A client that drops a stream stops vLLM's work on it, and its permit is free again."""
    async with gateway(server.base_url) as rig:
        await rig.dropped_call("/chat", {**LONG, "stream": True}, after_bytes=b'"content":"')
        await running_becomes(0, server, within_seconds=5)
        await until(lambda: rig.admission.in_use == 0, within_seconds=5)


async def test_leaving_a_plain_call_stops_the_engine(server: VllmServer) -> None:
    """So does a client that drops a call before a byte of the answer has come."""
    async with gateway(server.base_url) as rig:
        call = asyncio.create_task(rig.dropped_call("/chat", LONG, after_seconds=2))
        await running_becomes(1, server, within_seconds=10)
        await call
        await running_becomes(0, server, within_seconds=5)
        await until(lambda: rig.admission.in_use == 0, within_seconds=5)


async def test_leaving_a_batch_stops_all_of_it(server: VllmServer) -> None:
    """A dropped batch stops the items that run and never starts those that wait."""
    async with gateway(server.base_url, vllm_concurrency=2) as rig:
        started = await asyncio.to_thread(server.metric, "vllm:prompt_tokens_total")
        items = [{"id": str(n), "body": LONG} for n in range(6)]
        call = asyncio.create_task(rig.dropped_call("/chat/batch", {"items": items}, after_seconds=3))
        await running_becomes(2, server, within_seconds=10)
        two = await asyncio.to_thread(server.metric, "vllm:prompt_tokens_total") - started
        await call
        await running_becomes(0, server, within_seconds=5)
        await until(lambda: rig.admission.in_use == 0, within_seconds=5)
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


async def test_the_trap_itself(server: VllmServer) -> None:
    """After a 500 vLLM closes the connection, and no header of the answer says that it will."""
    body = json.dumps(FAILS_WITH_500).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = (await asyncio.wait_for(reader.read(), 30)).lower()  # to the end of the connection
    writer.close()
    assert answer.startswith(b"http/1.1 500")
    assert b"content-length" in answer
    assert b"connection: close" not in answer


async def test_sigterm(vllm_server: VllmServers, server: VllmServer) -> None:
    """SIGTERM breaks every answer off, each so that it can be seen; then nobody listens, and the gateway says 502.

    What vLLM shows depends on which of its processes is faster. A stream ends with an error event or with the finish
    reason ``abort``, and with [DONE] either way; or nothing comes any more, the process stays, and VLLM_TIMEOUT_SECONDS
    ends the stream with an error event of ours and no [DONE]. Single calls and batch items are 500 or 504, or end with
    ``abort``.
    """
    async with gateway(server.base_url, vllm_timeout_seconds=SILENCE_ENDS_SECONDS) as rig:
        items = asyncio.create_task(rig.batch([{"id": str(n), "body": LONG} for n in range(2)]))
        await running_becomes(2, server, within_seconds=20)
        events = await streamed_until(rig, server.process.terminate, LONG)
        chunks = [json.loads(data) for data in events if data != DONE]
        assert was_broken_off(chunks)
        fell_silent = chunks[-1].get("error", {}).get("type") == "upstream_timeout"
        assert (events[-1] == DONE) is not fell_silent, events[-3:]
        for line in await items:
            assert line["status"] in {500, 504} or was_broken_off([line["body"]]), line
        await asyncio.to_thread(vllm_server.stop)  # it may wait for its open streams for ever
        gone = await rig.client.post("/chat", json=bodies.ask())
        assert gone.status_code == 502
        assert "cannot be reached" in gone.json()["error"]["message"]
        assert rig.admission.in_use == 0
    reader = StreamReader()
    for data in events:
        reader.feed(encode_event(data))
    assert reader.outcome == "error"


def was_broken_off(chunks: list[dict[str, Any]]) -> bool:
    """Whether an error, or a finish reason that is none of an answer's own, stands among the chunks."""
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk.get("choices", ())]
    return "abort" in reasons or any("error" in chunk for chunk in chunks)


async def test_worker_killed_and_the_server_started_again(vllm_server: VllmServers, server: VllmServer) -> None:
    """A dead worker ends streams and batch items with an error each, then the whole server.

    The gateway needs no restart of its own: it answers as soon as vLLM listens on its port again.
    """
    async with gateway(server.base_url) as rig, GatewayClient(rig.url) as client:
        worker = next(pid for name, pid in server.children().items() if name.startswith("VLLM::Worker"))
        batch = asyncio.create_task(rig.batch([{"id": str(n), "body": LONG} for n in range(2)]))
        await running_becomes(2, server, within_seconds=20)
        async with client.stream_chat(LONG) as stream:
            pieces = aiter(stream)
            await anext(pieces)
            os.kill(worker, signal.SIGKILL)
            with pytest.raises(BrokenStream, match=r"error inside the stream: .*EngineCore"):
                async for _ in pieces:
                    pass
        assert stream.reply.text
        lines = await batch
        assert len(lines) == 2
        for line in lines:
            assert line["status"] >= 500
            assert line["error"]
        assert await asyncio.to_thread(server.process.wait, 60) is not None
        await until(lambda: rig.admission.in_use == 0, within_seconds=5)
        assert (await rig.client.post("/chat", json=bodies.ask())).status_code == 502
        await asyncio.to_thread(vllm_server.start_again)
        again = await rig.client.post("/chat", json=bodies.ask(max_tokens=2))
        assert again.status_code == 200, again.text

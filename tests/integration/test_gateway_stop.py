"""The gateway's last minute, as its own process: what runs is finished or told, and the exit code is 0."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.gateway_rig import BODY, http_client, items, until
from tests.integration.stub_upstream import StubRequest, StubUpstream, answers, streams, stub_upstream

SRC = Path(__file__).parents[2] / "src"
EVENTS = [b"data: {}\n\n"] * 20


@dataclass
class Served:
    """``vision-bench serve`` in a process, and a client that speaks to it."""

    process: subprocess.Popen[bytes]
    port: int
    client: httpx.AsyncClient
    log: Path

    async def exit_code(self, *, within_seconds: float) -> int:
        await until(lambda: self.process.poll() is not None, within_seconds=within_seconds)
        return self.process.wait()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def served(stub: StubUpstream, folder: Path, **settings: Any) -> AsyncIterator[Served]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "MAX_", "GATEWAY_"))}
    env = {**kept, "PYTHONPATH": str(SRC), "VLLM_BASE_URL": stub.base_url}
    command = [sys.executable, "-c", "from vision_bench.cli.main import main; main()", "serve", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**env, **{name: str(value) for name, value in settings.items()}},
            stdout=log,
            stderr=log,
        )
    try:
        async with http_client(f"http://127.0.0.1:{port}") as client:
            one = Served(process, port, client, folder / "log")
            await until(lambda: process.poll() is not None or _answers(port), within_seconds=60)
            yield one
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False, verify=False).status_code == 200  # noqa: S501
    except httpx.HTTPError:
        return False


def of_kind(plain_seconds: float, gap_seconds: float) -> Any:
    """Streams to whoever asks for a stream, answers everybody else after a while."""
    plain, stream = answers(delay_seconds=plain_seconds), streams(EVENTS, gap_seconds=gap_seconds)

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        await (stream if b'"stream"' in request.body else plain)(request, writer)

    return behave


async def test_sigterm_finishes_all_that_has_begun(tmp_path: Path) -> None:
    """A running call, a queued one, a stream, a batch in mid-answer and an upload that is half sent get all of their
    answers; an idle connection is closed, a new one refused; a second SIGTERM changes nothing; exit code 0."""
    async with (
        stub_upstream(of_kind(0.5, 0.1)) as stub,
        served(stub, tmp_path, VLLM_CONCURRENCY=2) as gateway,
    ):
        idle, idle_writer = await gateway.connect()
        idle_writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b'{"ok":true}' in await idle.readuntil(b"}")
        stream = asyncio.create_task(gateway.client.post("/chat", json={**BODY, "stream": True}))
        await until(lambda: stub.running == 1)
        batch = asyncio.create_task(gateway.client.post("/chat/batch", json={"items": items(3)}))
        await until(lambda: len(stub.requests) == 3)  # its first line is out, its second item runs
        queued = asyncio.create_task(gateway.client.post("/chat", json=BODY))
        body = json.dumps(BODY).encode()
        upload, upload_writer = await gateway.connect()
        upload_writer.write(b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:5])
        await asyncio.sleep(0.2)
        gateway.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(idle.read(), 10) == b""
        with pytest.raises(ConnectionError):
            await gateway.connect()
        gateway.process.send_signal(signal.SIGTERM)
        upload_writer.write(body[5:])
        assert (await upload.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert (await queued).status_code == 200
        assert [json.loads(line)["status"] for line in (await batch).content.splitlines()] == [200] * 3
        assert (await stream).content == b"".join(EVENTS)
        assert await gateway.exit_code(within_seconds=20) == 0
        for writer in (idle_writer, upload_writer):
            writer.close()
    log = gateway.log.read_text()
    assert "Traceback" not in log
    assert log.count("outcome=ok") == len(("health", "health", "stream", "batch", "queued", "upload"))


async def test_what_outlasts_the_grace_is_told_and_the_exit_code_is_0(tmp_path: Path) -> None:
    """One second of grace: a running call, a queued one and an upload end in a 503 that says so; a stream and a batch
    in mid-answer are broken off, never ended cleanly; vLLM's connections are closed."""
    async with (
        stub_upstream(of_kind(60, 1)) as stub,
        served(stub, tmp_path, VLLM_CONCURRENCY=3, GATEWAY_SHUTDOWN_GRACE_SECONDS=1) as gateway,
    ):
        stream, stream_writer = await gateway.connect()
        body = json.dumps({**BODY, "stream": True}).encode()
        stream_writer.write(b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await stream.readuntil(b"data: {}")
        batch, batch_writer = await gateway.connect()
        body = json.dumps({"items": items(1)}).encode()
        batch_writer.write(b"POST /chat/batch HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert b"x-batch-total: 1" in await batch.readuntil(b"\r\n\r\n")
        waiting = [asyncio.create_task(gateway.client.post("/chat", json=BODY)) for _ in range(3)]
        await until(lambda: stub.running == 3)
        upload, upload_writer = await gateway.connect()
        upload_writer.write(b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        await asyncio.sleep(0.2)
        gateway.process.send_signal(signal.SIGTERM)
        refused = await asyncio.gather(*waiting)
        assert {answer.status_code for answer in refused} == {503}
        assert {answer.json()["error"]["type"] for answer in refused} == {"shutting_down"}
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert (await upload.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 503 ")
        for reader in (stream, batch):
            assert not (await reader.read()).endswith(b"0\r\n\r\n"), "that would be a proper end"
        assert await gateway.exit_code(within_seconds=20) == 0
        await until(lambda: stub.open_connections == 0)
        for writer in (stream_writer, batch_writer, upload_writer):
            writer.close()
    log = gateway.log.read_text()
    assert "Traceback" not in log
    assert log.count("outcome=shutting_down") == 4


async def test_sigint_finishes_what_runs_and_a_second_one_does_not_wait(tmp_path: Path) -> None:
    """Once: the running call is answered, exit code 130. Twice: the process ends at once, with the same code."""
    for delay_seconds, signals in ((1, 1), (60, 2)):
        async with (
            stub_upstream(answers(delay_seconds=delay_seconds)) as stub,
            served(stub, tmp_path) as gateway,
        ):
            call = asyncio.create_task(gateway.client.post("/chat", json=BODY))
            await until(lambda: stub.running == 1)
            for _ in range(signals):
                gateway.process.send_signal(signal.SIGINT)
                await asyncio.sleep(0.3)
            if signals == 1:
                assert (await call).status_code == 200
            assert await gateway.exit_code(within_seconds=20) == 130
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await until(lambda: stub.open_connections == 0)

"""Bodies that are too big, bodies that are merely big, and a proxy in front."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from benchmarks.soak.processes import StubProcess, gateway_process
from tests.integration.gateway_rig import BODY, Rig, gateway, http_client, items, until
from tests.integration.stub_upstream import answers, streams, stub_upstream

from vision_bench.gateway.serving import KEPT_BYTES

MIB = 1024 * 1024


async def upload(rig: Rig, path: str, head: str, chunks: AsyncIterator[bytes]) -> tuple[bytes, int]:
    """Send a raw request and read the answer at the same time, as it comes; give it and the bytes sent so far."""
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    sent = 0

    async def send() -> None:
        nonlocal sent
        writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
        async for data in chunks:
            writer.write(data)
            await writer.drain()
            sent += len(data)

    sending = asyncio.create_task(send())
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return answer + await reader.readexactly(length), sent
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.transport.abort()


async def endless_chunks(count: int, begin: bytes) -> AsyncIterator[bytes]:
    yield b"%x\r\n%s\r\n" % (len(begin), begin)
    for _ in range(count):
        yield b"100000\r\n" + bytes(MIB) + b"\r\n"
    yield b"0\r\n\r\n"


@pytest.mark.parametrize(("path", "begin"), [("/chat", b"x"), ("/chat/batch", b'{"items":[{"id":"')])
async def test_an_endless_body_is_413_before_it_is_all_read(path: str, begin: bytes) -> None:
    """Chunked, no length, 600 MB against a limit of 64 MiB: refused early, as JSON, without having been held."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with stub_upstream() as stub, gateway(stub, max_body_bytes=64 * MIB) as rig:
        answer, sent = await upload(rig, path, "Transfer-Encoding: chunked", endless_chunks(600, begin))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"]["type"] == "too_large"
    assert "MAX_BODY_BYTES" in json.loads(body)["error"]["message"]
    assert sent < 200 * MIB
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024
    assert grown_mib < 64 + 32, "the limit, and what the test itself holds"
    assert not stub.requests


async def test_a_declared_body_over_the_limit_is_413_unread() -> None:
    """Content-Length over the limit: refused on the headers alone, and a client that asks first never sends."""

    async def nothing() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async with stub_upstream() as stub, gateway(stub, max_body_bytes=1000) as rig:
        for head in ("Content-Length: 1001", "Content-Length: 1001\r\nExpect: 100-continue"):
            answer, _ = await upload(rig, "/chat", head, nothing())
            assert answer.startswith(b"HTTP/1.1 413 "), "no 100 Continue before it"
        assert (await rig.client.post("/chat", content=b"x" * 1000)).status_code == 200
    assert len(stub.requests) == 1


async def test_an_ordinary_client_reads_the_413() -> None:
    """A client that sends everything before it reads still gets the answer, not a reset."""
    async with stub_upstream() as stub, gateway(stub, max_body_bytes=MIB) as rig:
        answer = await rig.client.post("/chat", content=bytes(20 * MIB))
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, 413)
        assert (await rig.client.get("/healthz")).status_code == 200


@pytest.mark.heavy
async def test_big_bodies_do_not_hold_the_others_up(tmp_path: Path) -> None:
    """30 MB to /chat and a batch of 128 items of 1.2 MB, each in a process of its own, while /healthz is polled: the
    batch is answered in under 5 s, /healthz never takes more than half a second, and the memory comes back."""
    clip = b"A" * 1_200_000
    batch = b'{"items":[%s]}' % b",".join(b'{"id":"%d","body":{"clip":"%s"}}' % (n, clip) for n in range(128))
    single = b'{"clip":"%s"}' % (b"A" * 30_000_000)
    with (
        StubProcess() as stub,
        gateway_process({"VLLM_BASE_URL": f"http://127.0.0.1:{stub.port}/v1"}, tmp_path) as served,
    ):
        idle_bytes = served.resident_bytes()
        waits: list[float] = []
        async with http_client(f"http://127.0.0.1:{served.port}") as client:
            probing = asyncio.create_task(_probe(served.port, waits))
            answer = await client.post("/chat", content=single)
            assert answer.status_code == 200
            began = time.monotonic()
            lines = (await client.post("/chat/batch", content=batch)).content.splitlines()
            batch_seconds = time.monotonic() - began
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)
        await asyncio.sleep(2)
        left_mib = (served.resident_bytes() - idle_bytes) / MIB
    print(
        f"150 MB batch {batch_seconds:.2f} s, healthz worst {max(waits):.3f} s of {len(waits)}, {left_mib:.0f} MiB left"
    )
    assert [json.loads(line)["status"] for line in lines] == [200] * 128
    assert len(waits) > 20
    assert max(waits) < 0.5
    assert batch_seconds < 5
    assert left_mib < KEPT_BYTES / MIB + 32, "what glibc keeps on purpose, and a little"


async def _probe(port: int, waits: list[float]) -> None:
    """Ask /healthz again and again over a bare socket: what is timed is the gateway and not a client library."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            began = time.monotonic()
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b'{"ok":true}' in await reader.readuntil(b"}")
            waits.append(time.monotonic() - began)
            await asyncio.sleep(0.02)
    finally:
        writer.close()


@asynccontextmanager
async def nginx_before(rig: Rig, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Debian's nginx with its defaults in front of the gateway, and a client that speaks to it."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert nginx, "nginx is missing: apt-get install nginx-light"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temp = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"""{"user root;" if os.geteuid() == 0 else ""} daemon off; pid {folder}/pid; error_log stderr;
        events {{}}
        http {{ access_log off; {temp}
          server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {rig.url}; }} }} }}"""
    )
    server = await asyncio.create_subprocess_exec(nginx, "-c", str(folder / "nginx.conf"), "-p", str(folder))
    try:
        async with http_client(f"http://127.0.0.1:{port}") as client:
            await until(lambda: _listens(port))
            yield client
    finally:
        server.terminate()
        await server.wait()


@pytest.mark.debian("nginx-light")
async def test_nginx_with_its_defaults_passes_lines_on_as_they_come(tmp_path: Path) -> None:
    """Six items one second apart behind nginx's default buffering: the first line is there 3 s before the last."""
    async with (
        stub_upstream(answers(delay_seconds=1)) as stub,
        gateway(stub, vllm_concurrency=1) as rig,
        nginx_before(rig, tmp_path) as client,
        client.stream("POST", "/chat/batch", json={"items": items(6)}) as answer,
    ):
        arrivals = [time.monotonic() async for _line in answer.aiter_lines()]
        assert answer.headers["cache-control"] == "no-cache"
    assert len(arrivals) == 6
    assert arrivals[-1] - arrivals[0] >= 3


@pytest.mark.debian("nginx-light")
@pytest.mark.parametrize("path", ["/chat", "/v1/chat/completions"])
async def test_nginx_with_its_defaults_passes_events_on_as_they_come(path: str, tmp_path: Path) -> None:
    """Three events half a second apart: the first is there before the last was sent; a stream that breaks off upstream
    is no clean end behind nginx either."""
    event = b'data: {"choices":[]}\n\n'
    async with (
        stub_upstream(streams([event] * 3, gap_seconds=0.5)) as stub,
        gateway(stub) as rig,
        nginx_before(rig, tmp_path) as client,
    ):
        async with client.stream("POST", path, json={**BODY, "stream": True}) as answer:
            arrivals = [time.monotonic() async for _part in answer.aiter_raw()]
        assert arrivals[-1] - arrivals[0] >= 0.7
        stub.behaviour = streams([event] * 2, then="reset")
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(path, json={**BODY, "stream": True})


@pytest.mark.debian("nginx-light")
async def test_a_caller_that_leaves_nginx_leaves_us(tmp_path: Path) -> None:
    """nginx closes its connection when its caller has left: the call upstream ends too."""
    async with (
        stub_upstream(answers(delay_seconds=30)) as stub,
        gateway(stub) as rig,
        nginx_before(rig, tmp_path) as client,
    ):
        call = asyncio.create_task(client.post("/chat", json=BODY))
        await until(lambda: stub.running == 1)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: stub.open_connections == 0 and rig.admission.in_use == 0, within_seconds=3)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

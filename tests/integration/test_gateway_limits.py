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
from pathlib import Path

import pytest
from tests.integration.gateway_rig import BODY, Rig, gateway, http_client, items, until
from tests.integration.stub_upstream import answers, stub_upstream

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


async def endless_chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"100000\r\n" + bytes(MIB) + b"\r\n"
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("path", ["/chat", "/chat/batch"])
async def test_an_endless_body_is_413_before_it_is_all_read(path: str) -> None:
    """Chunked, no length, 600 MB against a limit of 64 MiB: refused early, as JSON, without having been held."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with stub_upstream() as stub, gateway(stub, max_body_bytes=64 * MIB) as rig:
        answer, sent = await upload(rig, path, "Transfer-Encoding: chunked", endless_chunks(600))
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
async def test_big_bodies_do_not_hold_the_others_up() -> None:
    """30 MB to /chat and a 128-item batch of 150 MB, while /healthz is polled.

    Gateway, stub and client share this process and its one interpreter, so the bounds are wide.
    """
    clip = "A" * 1_200_000
    batch = json.dumps({"items": [{"id": str(n), "body": {"n": n, "clip": clip}} for n in range(128)]}).encode()
    single = json.dumps({**BODY, "clip": "A" * 30_000_000}).encode()
    async with (
        stub_upstream() as stub,
        gateway(stub) as rig,
        http_client(rig.url) as prober,
    ):
        waits: list[float] = []

        async def probe() -> None:
            while True:
                began = time.monotonic()
                assert (await prober.get("/healthz")).status_code == 200
                waits.append(time.monotonic() - began)
                await asyncio.sleep(0.02)

        probing = asyncio.create_task(probe())
        began = time.monotonic()
        answer = await rig.client.post("/chat", content=single)
        single_seconds, began = time.monotonic() - began, time.monotonic()
        assert answer.status_code == 200
        lines = (await rig.client.post("/chat/batch", content=batch)).content.splitlines()
        batch_seconds = time.monotonic() - began
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
        print(f"30 MB {single_seconds:.2f} s, 150 MB batch {batch_seconds:.2f} s, healthz worst {max(waits):.3f} s")
        assert [json.loads(line)["status"] for line in lines] == [200] * 128
        assert len(stub.requests[0].body) == len(single)
        assert len(waits) > 5
        assert max(waits) < 2
        assert batch_seconds < 30


@pytest.mark.debian("nginx-light")
async def test_nginx_with_its_defaults_passes_lines_on_as_they_come(tmp_path: Path) -> None:
    """Six items one second apart behind nginx's default buffering: the first line is there 3 s before the last."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert nginx, "nginx is missing: apt-get install nginx-light"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with stub_upstream(answers(delay_seconds=1)) as stub, gateway(stub, vllm_concurrency=1) as rig:
        temp = "".join(
            f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(
            f"""{"user root;" if os.geteuid() == 0 else ""} daemon off; pid {tmp_path}/pid; error_log stderr;
            events {{}}
            http {{ access_log off; {temp}
              server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {rig.url}; }} }} }}"""
        )
        server = await asyncio.create_subprocess_exec(nginx, "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path))
        try:
            async with http_client(f"http://127.0.0.1:{port}") as client:
                await until(lambda: _listens(port))
                async with client.stream("POST", "/chat/batch", json={"items": items(6)}) as answer:
                    arrivals = [time.monotonic() async for _line in answer.aiter_lines()]
        finally:
            server.terminate()
            await server.wait()
    assert len(arrivals) == 6
    assert arrivals[-1] - arrivals[0] >= 3


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

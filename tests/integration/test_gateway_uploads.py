"""Bodies on their way in: room before reading, no permit while uploading, items sent before their batch is whole."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.gateway_rig import BODY, caller, gateway, http_client, items, until, upload_head
from tests.integration.stub_upstream import StubRequest, answers, stub_upstream

MB = 1_000_000


async def test_a_slow_upload_holds_no_permit() -> None:
    """With one permit, half a body that does not go on lets another request through at once."""
    async with stub_upstream() as stub, gateway(stub, vllm_concurrency=1) as rig, caller(rig) as slow:
        await slow.send(upload_head("/chat", 1000) + b"x" * 500)
        await until(lambda: rig.app.state.buffer.held_bytes == 1000)
        assert rig.admission.in_use == 0
        assert (await rig.client.post("/chat", json=BODY)).status_code == 200
        await slow.send(b"x" * 500)
        assert (await slow.answer())[0] == 200
    assert len(stub.requests) == 2


async def test_uploads_beyond_the_buffer_wait_unread_and_half_read_ones_do_not_block_each_other() -> None:
    """Room for two bodies, three half-sent: the third is not read; when one of the two is done it goes on, in turn,
    and its wait is queue time."""
    async with (
        stub_upstream() as stub,
        gateway(stub, gateway_max_body_bytes=MB, gateway_buffer_bytes=2 * MB) as rig,
        caller(rig) as first,
        caller(rig) as second,
        caller(rig) as third,
    ):
        buffer = rig.app.state.buffer
        for number, one in enumerate((first, second)):
            await one.send(upload_head("/chat", MB) + b"x" * 1000)
            await until(lambda number=number: buffer.held_bytes == (number + 1) * MB)
        await third.send(upload_head("/chat", MB) + b"x" * 1000)
        await until(lambda: buffer.waiting == 1)
        await second.send(b"x" * (MB - 1000))
        assert (await second.answer())[0] == 200
        await until(lambda: buffer.waiting == 0)
        assert buffer.held_bytes == 2 * MB
        await third.send(b"x" * (MB - 1000))
        status, third_head, _ = await third.answer()
        assert status == 200
        queue_ms = float(third_head.lower().partition(b"queue;dur=")[2].partition(b",")[0])
        assert queue_ms > 0
        await first.send(b"x" * (MB - 1000))
        assert (await first.answer())[0] == 200
        await until(lambda: buffer.held_bytes == 0)
    assert len(stub.requests) == 3


async def test_an_unknown_length_takes_the_most_there_may_be() -> None:
    """Chunked: the body limit is reserved, and what was not needed is given back when the body has been read."""
    async with (
        stub_upstream(answers(delay_seconds=0.5)) as stub,
        gateway(stub, gateway_max_body_bytes=MB, gateway_buffer_bytes=2 * MB) as rig,
        caller(rig) as one,
    ):
        buffer = rig.app.state.buffer
        await one.send(b"POST /chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await until(lambda: buffer.held_bytes == MB)
        await one.send(b"0\r\n\r\n")
        await until(lambda: buffer.held_bytes == 3)
        assert (await one.answer())[0] == 200
        await until(lambda: buffer.held_bytes == 0)


async def test_no_room_in_time_is_503() -> None:
    """The wait for room has the limit of the wait for a permit, and the same answer."""
    async with (
        stub_upstream() as stub,
        gateway(stub, gateway_max_body_bytes=MB, gateway_buffer_bytes=MB, vllm_acquire_timeout_seconds=0.3) as rig,
        caller(rig) as slow,
    ):
        await slow.send(upload_head("/chat", MB) + b"x")
        await until(lambda: rig.app.state.buffer.held_bytes == MB)
        refused = await rig.client.post("/chat", json=BODY)
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "acquire_timeout")
        assert "GATEWAY_BUFFER_BYTES" in refused.json()["error"]["message"]
        assert "upstream" not in refused.headers["server-timing"]
        assert int(refused.headers["retry-after"]) >= 1
    assert not stub.requests


async def test_a_caller_that_leaves_in_its_upload_gives_its_room_back() -> None:
    """Half a body and a closed socket."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        async with caller(rig) as one:
            await one.send(upload_head("/chat/batch", 1000) + b"x")
            await until(lambda: rig.app.state.buffer.held_bytes == 1000)
        await until(lambda: rig.app.state.buffer.held_bytes == 0)


@pytest.mark.parametrize("limit", ["gateway_upload_idle_seconds", "gateway_upload_timeout_seconds"])
@pytest.mark.parametrize("path", ["/chat", "/chat/batch"])
async def test_an_upload_that_stands_still_or_drips_is_408(path: str, limit: str) -> None:
    """Room and connection are given back, the calls of items that had come are closed, and the answer is JSON."""
    begin = b'{"items": [{"id": "a", "body": {"n": 1}}'
    async with (
        stub_upstream(answers(delay_seconds=30)) as stub,
        gateway(stub, **{limit: 0.5}) as rig,
        caller(rig) as slow,
    ):
        await slow.send(upload_head(path, 1000) + begin)
        await until(lambda: rig.app.state.buffer.held_bytes == 1000)
        if path == "/chat/batch":
            await until(lambda: stub.running == 1)
        while limit == "gateway_upload_timeout_seconds" and rig.app.state.buffer.held_bytes:
            await slow.send(b" ")
            await asyncio.sleep(0.05)
        status, answer_head, body = await slow.answer()
        assert (status, json.loads(body)["error"]["type"]) == (408, "upload_timeout")
        assert limit.upper() in json.loads(body)["error"]["message"]
        assert b"connection: close" in answer_head.lower()
        assert rig.app.state.buffer.held_bytes == 0
        await until(lambda: stub.running == 0 and stub.open_connections == 0)
        assert (rig.admission.in_use, rig.admission.waiting) == (0, 0)
        await until(lambda: not rig.server.server_state.connections)
    assert len(stub.requests) == (path == "/chat/batch")


def batch_bytes(count: int) -> bytes:
    return json.dumps({"items": items(count)}).encode()


async def test_an_item_goes_on_before_the_batch_is_whole() -> None:
    """Its last brace is enough: vLLM has the first item, and has answered it, while the second is half sent; not a byte
    of the answer leaves before the last byte of the request."""
    body = batch_bytes(2)
    cut = body.index(b'"clip-1"')
    async with stub_upstream() as stub, gateway(stub) as rig, caller(rig) as one:
        await one.send(upload_head("/chat/batch", len(body)) + body[:cut])
        await until(lambda: len(stub.requests) == 1 and rig.admission.in_use == 0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(one._reader.read(1), 0.2)
        await one.send(body[cut:])
        status, answer_head, answer = await one.answer()
    assert status == 200
    assert b"x-batch-total: 2" in answer_head.lower()
    assert (answer.count(b'"id":"clip-0"'), answer.count(b'"id":"clip-1"')) == (1, 1)


@pytest.mark.parametrize(
    ("rest", "status", "type"),
    [
        (b', {"id": 3}]}', 400, "invalid_request"),
        (b", nonsense]}", 400, "invalid_request"),
        (b"], x", 400, "invalid_request"),
        (b', {"id": "b", "body": {}}, {"id": "c", "body": {}}]}', 413, "too_many_items"),
        (b" " * 2000, 413, "too_large"),
    ],
    ids=["a bad item", "no JSON", "cut short", "too many", "too long"],
)
async def test_a_batch_that_proves_bad_later_takes_its_calls_back(rest: bytes, status: int, type: str) -> None:
    """The first item runs already: its call is closed, its permit free, and the answer is one JSON error."""
    begin = b'{"items": [{"id": "a", "body": {"n": 1}}'
    async with (
        stub_upstream(answers(delay_seconds=30)) as stub,
        gateway(stub, max_batch_items=2, gateway_max_body_bytes=1000) as rig,
        caller(rig) as one,
    ):
        await one.send(b"POST /chat/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        await one.send(b"%x\r\n" % len(begin) + begin + b"\r\n")
        await until(lambda: stub.running == 1)
        await one.send(b"%x\r\n" % len(rest) + rest + b"\r\n0\r\n\r\n")
        got_status, _, body = await one.answer()
        assert (got_status, json.loads(body)["error"]["type"]) == (status, type)
        await until(lambda: stub.running == 0 and stub.open_connections == 0)
        assert (rig.admission.in_use, rig.admission.waiting, rig.app.state.buffer.held_bytes) == (0, 0, 0)
    assert len(stub.requests) == 1


async def test_a_batch_gives_its_room_back_item_by_item() -> None:
    """With its first item answered and its second running, the room of a batch is what the second needs, and what
    stands around the items; another request finds the rest."""
    clip = "x" * 100_000
    body = json.dumps({"items": [{"id": str(n), "body": {**BODY, "clip": clip}} for n in range(2)]}).encode()
    gate = asyncio.Event()
    behave = answers()

    async def second_waits(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        if request.headers["x-request-id"].endswith("-1"):
            await gate.wait()
        await behave(request, writer)

    async with stub_upstream(second_waits) as stub, gateway(stub) as rig, caller(rig) as one:
        await one.send(upload_head("/chat/batch", len(body)) + body)
        await until(lambda: len(stub.requests) == 2 and rig.admission.in_use == 1)
        await until(lambda: rig.app.state.buffer.held_bytes < 101_000)
        assert rig.app.state.buffer.held_bytes > 100_000
        gate.set()
        assert (await one.answer())[0] == 200
        await until(lambda: rig.app.state.buffer.held_bytes == 0)


async def test_a_batch_over_its_keys_limit_is_refused_whole() -> None:
    """Three a minute: a batch of three passes; of the next key's four, what runs is cancelled and the answer is one
    429."""
    settings = {"gateway_api_keys": "one,two", "gateway_key_requests_per_minute": 3}
    async with stub_upstream() as stub, gateway(stub, **settings) as rig:
        one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
        assert len(await rig.batch(items(3), headers=one)) == 3
        assert (await rig.client.post("/chat", json=BODY, headers=one)).status_code == 429
        stub.behaviour = answers(delay_seconds=30)
        refused = await rig.client.post("/chat/batch", json={"items": items(4)}, headers=two)
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "rate_limited")
        assert "a batch counts its items" in refused.json()["error"]["message"]
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        await until(lambda: stub.running == 0 and rig.admission.in_use == 0)
        assert rig.app.state.buffer.held_bytes == 0


@pytest.mark.parametrize(
    ("count", "size_bytes", "buffer_bytes"),
    [
        pytest.param(60, 400_000, 4 * MB, id="short"),
        pytest.param(2000, 1_600_000, 512 * 1024 * 1024, id="whole", marks=pytest.mark.heavy),
    ],
)
async def test_a_crowd_is_served_to_the_last_within_the_buffer(count: int, size_bytes: int, buffer_bytes: int) -> None:
    """All at once: none refused, all answered, the buffer never over its limit, and /healthz answers meanwhile."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    request = upload_head("/chat", size_bytes) + b"x" * size_bytes
    async with (
        stub_upstream() as stub,
        gateway(stub, gateway_max_body_bytes=size_bytes, gateway_buffer_bytes=buffer_bytes) as rig,
        http_client(rig.url) as prober,
    ):
        buffer = rig.app.state.buffer
        most_held = most_waiting = 0
        waits: list[float] = []

        async def one() -> int:
            async with caller(rig) as connection:
                await connection.send(request)
                return (await connection.answer())[0]

        async def watch() -> None:
            nonlocal most_held, most_waiting
            while True:
                most_held = max(most_held, buffer.held_bytes)
                most_waiting = max(most_waiting, buffer.waiting)
                began = time.monotonic()
                assert (await prober.get("/healthz")).status_code == 200
                waits.append(time.monotonic() - began)
                stub.requests.clear()  # the stub keeps what it saw; here that would be gigabytes
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        statuses = await asyncio.gather(*(one() for _ in range(count)))
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert statuses == [200] * count
        assert 0 < most_held <= buffer_bytes
        assert most_waiting > 0
        assert buffer.held_bytes == 0
        assert waits


SRC = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    ("count", "size_bytes", "allowance"),
    [
        pytest.param(16, 1_600_000, 2.0, id="short"),
        pytest.param(128, 1_600_000, 1.3, id="whole", marks=pytest.mark.heavy),
    ],
)
async def test_a_batch_is_held_once(count: int, size_bytes: int, allowance: float, tmp_path: Path) -> None:
    """Peak memory of the gateway's own process grows by little more than the body, though vLLM is slow; the first item
    is with vLLM before the last byte has been sent."""
    body = json.dumps({"items": [{"id": str(n), "body": {"clip": "A" * size_bytes}} for n in range(count)]}).encode()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with stub_upstream(answers(delay_seconds=0.4)) as stub:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SRC), "VLLM_BASE_URL": stub.base_url},
            stderr=subprocess.DEVNULL,
        )
        try:
            await until(lambda: process.poll() is not None or listens(port), within_seconds=60)
            idle_bytes = peak_bytes(process.pid)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(upload_head("/chat/batch", len(body)))
            writer.write(memoryview(body)[:-2])
            await writer.drain()
            await until(lambda: len(stub.requests) > 0, within_seconds=60)
            writer.write(body[-2:])
            answer = await reader.readuntil(b"0\r\n\r\n")
            grown_bytes = peak_bytes(process.pid) - idle_bytes
            writer.close()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    print(f"{len(body) / 1e6:.0f} MB, peak +{grown_bytes / 1e6:.0f} MB: {grown_bytes / len(body):.2f}x")
    assert answer.count(b'"status":200') == count
    assert grown_bytes <= allowance * len(body)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def peak_bytes(pid: int) -> int:
    """The most memory that the process ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

"""Callers that leave, permits that come back, and a gateway that stays awake meanwhile."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from typing import Any

import httpx
import pytest
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import Response
from tests.integration.gateway_rig import BODY, Rig, gateway, http_client, items, until
from tests.integration.stub_upstream import StubUpstream, answers, by_index, streams, stub_upstream

LONG = answers(delay_seconds=30)


async def all_well(rig: Rig, stub: StubUpstream, *, calls: int, each_seconds: float) -> float:
    """Seconds that ``calls`` at once take when every permit is there; fails when one is not."""
    stub.behaviour = answers(delay_seconds=each_seconds)
    stub.most_running = 0
    began = time.monotonic()
    statuses = [
        answer.status_code
        for answer in await asyncio.gather(*(rig.client.post("/chat", json=BODY) for _ in range(calls)))
    ]
    assert statuses == [200] * calls
    return time.monotonic() - began


SILENT_STREAM = streams([b"data: {}\n\n"], then="silent")


@pytest.mark.parametrize(
    ("path", "body", "behaviour"),
    [
        ("/chat", BODY, LONG),
        ("/chat", {**BODY, "stream": True}, SILENT_STREAM),
        ("/v1/chat/completions", BODY, LONG),
        ("/chat/batch", {"items": items(3)}, LONG),
    ],
    ids=["plain", "streamed", "openai", "batch"],
)
async def test_two_hundred_callers_that_leave_take_nothing_with_them(path: str, body: Any, behaviour: Any) -> None:
    """200 calls dropped within 0.3 s; a second later the stub has no open connection, and 20 calls of 50 ms are all
    answered with 200 within two seconds, four at a time."""
    draw = random.Random(1)
    async with stub_upstream(behaviour) as stub, gateway(stub, vllm_concurrency=4) as rig:
        await asyncio.gather(*(rig.dropped_call(path, body, after_seconds=draw.uniform(0, 0.3)) for _ in range(200)))
        await until(lambda: stub.open_connections == 0, within_seconds=1)
        await until(lambda: (rig.admission.in_use, rig.admission.waiting) == (0, 0), within_seconds=1)
        await until(lambda: rig.app.state.buffer.held_bytes == 0, within_seconds=1)
        seconds = await all_well(rig, stub, calls=20, each_seconds=0.05)
        assert stub.most_running == 4
        assert seconds < 2  # 0.25 s on a quiet machine


async def test_a_batch_whose_caller_leaves_stops_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """After the first of 12 lines: the running calls are closed, the waiting items never sent, one log line says it."""
    caplog.set_level(logging.INFO, "vision_bench")
    behaviour = by_index({0: answers(delay_seconds=0.1)}, LONG)
    async with stub_upstream(behaviour) as stub, gateway(stub) as rig:
        await rig.dropped_call("/chat/batch", {"items": items(12)}, after_bytes=b'"clip-0"')
        left = time.monotonic()
        await until(lambda: stub.running == 0, within_seconds=3)
        assert time.monotonic() - left < 1
        await until(lambda: (rig.admission.in_use, rig.admission.waiting) == (0, 0), within_seconds=1)
        assert stub.abandoned == 4
        assert len(stub.requests) == 5
        await asyncio.sleep(0.2)
        assert len(stub.requests) == 5
    lines = [record.getMessage() for record in caplog.records if "client_left" in record.getMessage()]
    assert len(lines) == 1
    assert "route=/chat/batch" in lines[0]
    assert "items=12" in lines[0]


@pytest.mark.parametrize("path", ["/chat", "/chat/batch"])
async def test_a_caller_that_waits_and_leaves_is_forgotten(path: str) -> None:
    """A request that leaves the queue before its permit never reaches vLLM, and holds nobody up."""
    body = BODY if path == "/chat" else {"items": items(3)}
    async with stub_upstream(answers(delay_seconds=1)) as stub, gateway(stub, vllm_concurrency=1) as rig:
        first = asyncio.create_task(rig.client.post("/chat", json=BODY))
        await until(lambda: rig.admission.in_use == 1)
        dropped = asyncio.create_task(rig.dropped_call(path, body, after_seconds=0.3))
        await until(lambda: rig.admission.waiting > 0)
        await dropped
        await until(lambda: rig.admission.waiting == 0, within_seconds=1)
        assert (await first).status_code == 200
    assert len(stub.requests) == 1


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_caller_that_leaves_a_running_call_ends_it_upstream(is_streamed: bool) -> None:
    """vLLM sees its connection closed, streamed or not, so that it stops generating."""
    behaviour = streams([b"data: {}\n\n"] * 1000, gap_seconds=0.05) if is_streamed else LONG
    async with stub_upstream(behaviour) as stub, gateway(stub) as rig:
        if is_streamed:
            await rig.dropped_call("/chat", {**BODY, "stream": True}, after_bytes=b"data: {}\n\n")
        else:
            dropped = asyncio.create_task(rig.dropped_call("/chat", BODY, after_seconds=0.5))
            await until(lambda: stub.running == 1)
            await dropped
        left = time.monotonic()
        await until(lambda: stub.open_connections == 0, within_seconds=3)
        assert time.monotonic() - left < 1.5
        await until(lambda: rig.admission.in_use == 0, within_seconds=1)
    assert stub.abandoned == 1


async def test_a_caller_that_leaves_in_its_upload_holds_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Half a body and a closed socket: no permit, no call, one line in the log."""
    caplog.set_level(logging.INFO, "vision_bench")
    async with stub_upstream() as stub, gateway(stub) as rig:
        _, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.close()
        await until(lambda: any("client_left" in record.getMessage() for record in caplog.records))
        assert rig.admission.in_use == rig.admission.waiting == 0
    assert not stub.requests


async def test_leaving_at_any_moment_loses_no_permit() -> None:
    """60 rounds of callers that leave while waiting, connecting, before the first byte and in the body; then every
    permit is there and never more."""
    draw = random.Random(2)
    moments = [0.0, 0.001, 0.004, 0.02, 0.05]
    async with stub_upstream() as stub, gateway(stub) as rig:
        for turn in range(60):
            slow = streams([b"data: {}\n\n"] * 50, gap_seconds=0.002) if turn % 2 else answers(delay_seconds=0.03)
            stub.behaviour = slow
            dropped = [
                rig.dropped_call("/chat", BODY, after_seconds=draw.choice(moments) * draw.uniform(0.5, 1.5))
                for _ in range(6)
            ]
            dropped.append(rig.dropped_call("/chat/batch", {"items": items(6)}, after_seconds=draw.choice(moments)))
            await asyncio.gather(*dropped)
        await until(lambda: (rig.admission.in_use, rig.admission.waiting) == (0, 0), within_seconds=5)
        await until(lambda: stub.running == 0, within_seconds=3)
        seconds = await all_well(rig, stub, calls=12, each_seconds=0.2)
        assert stub.most_running == 4
        assert seconds < 5  # 0.6 s on a quiet machine


async def test_leaving_while_connecting_gives_the_permit_back() -> None:
    """A vLLM whose machine takes no connection: the callers leave before there is one, and their permits come back."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
            async with gateway(f"http://127.0.0.1:{port}/v1") as rig:
                dropped = [
                    asyncio.create_task(rig.dropped_call("/chat", BODY, after_seconds=0.3)),
                    asyncio.create_task(rig.dropped_call("/chat/batch", {"items": items(2)}, after_seconds=0.3)),
                ]
                await until(lambda: rig.admission.in_use == 3)
                await asyncio.gather(*dropped)
                await until(lambda: rig.admission.in_use == 0, within_seconds=1)
        finally:
            for filler in fillers:
                filler.close()


async def test_a_middleware_that_reads_requests_does_not_hide_that_a_caller_left() -> None:
    """An application around ours that has read the body: its caller's leaving still ends the call upstream."""

    async def read_first(request: Request, call_next: Any) -> Response:
        assert await request.body()
        answer: Response = await call_next(request)
        return answer

    async with stub_upstream(LONG) as stub, gateway(stub, around=lambda app: _Reading(app, read_first)) as rig:
        dropped = asyncio.create_task(rig.dropped_call("/chat", BODY, after_seconds=0.5))
        await until(lambda: stub.running == 1)
        await dropped
        await until(lambda: stub.open_connections == 0, within_seconds=1.5)
        await until(lambda: rig.admission.in_use == 0, within_seconds=1)


class _Reading(BaseHTTPMiddleware):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)


async def test_both_routes_share_the_permits() -> None:
    """Three single calls and a batch of six at once: never more than C upstream, all answered."""
    async with stub_upstream(answers(delay_seconds=0.1)) as stub, gateway(stub, vllm_concurrency=2) as rig:
        singles = [rig.client.post("/chat", json=BODY) for _ in range(3)]
        *single, lines = await asyncio.gather(*singles, rig.batch(items(6)))
        assert [answer.status_code for answer in single] == [200] * 3
        assert [line["status"] for line in lines] == [200] * 6
    assert stub.most_running == 2


async def test_health_answers_while_the_gate_is_full() -> None:
    """One permit taken, 30 calls waiting: /healthz goes on answering, and nobody asks vLLM for it."""
    async with stub_upstream(LONG) as stub, gateway(stub, vllm_concurrency=1) as rig:
        calls = [asyncio.create_task(rig.client.post("/chat", json=BODY)) for _ in range(30)]
        await until(lambda: (rig.admission.in_use, rig.admission.waiting) == (1, 29))
        waits = []
        async with http_client(rig.url) as prober:
            for _ in range(20):
                began = time.monotonic()
                answer = await prober.get("/healthz")
                waits.append(time.monotonic() - began)
                assert (answer.status_code, answer.json()) == (200, {"ok": True})
                await asyncio.sleep(0.02)
        assert rig.admission.waiting == 29
        assert max(waits) < 3, "a blocked loop would wait for the 30 s call"
        assert sorted(waits)[len(waits) // 2] < 0.1
        assert len(stub.requests) == 1
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_health_needs_no_vllm() -> None:
    """200 with nobody at the other end."""
    async with gateway("http://127.0.0.1:9/v1") as rig:
        answer = await rig.client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b'{"ok":true}')


async def test_stopping_lets_running_calls_finish() -> None:
    """A call in flight when the server is told to stop gets its answer; then the server ends."""
    async with stub_upstream(answers(delay_seconds=0.5)) as stub, gateway(stub) as rig:
        call = asyncio.create_task(rig.client.post("/chat", json=BODY))
        await until(lambda: stub.running == 1)
        rig.server.should_exit = True
        assert (await call).status_code == 200


async def test_stopping_does_not_hang_on_a_call_that_never_ends() -> None:
    """Past the grace the call is cancelled, its connection to vLLM closed, and the server ends."""
    async with stub_upstream(LONG) as stub:
        began = time.monotonic()
        async with gateway(stub) as rig:
            rig.server.config.timeout_graceful_shutdown = 1
            call = asyncio.create_task(rig.client.post("/chat", json=BODY))
            await until(lambda: stub.running == 1)
            rig.server.should_exit = True
            with pytest.raises(httpx.HTTPError):
                await asyncio.wait_for(_must_fail(call), 10)
        assert time.monotonic() - began < 10
        await until(lambda: stub.open_connections == 0)


async def _must_fail(call: asyncio.Task[httpx.Response]) -> None:
    (await call).raise_for_status()

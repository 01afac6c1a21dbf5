"""The gateway's connections to vLLM: which are used again, which are replaced, how many there are."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any

import httpx
import pytest
from tests.integration.gateway_rig import BODY, Rig, gateway, until
from tests.integration.stub_upstream import (
    Behaviour,
    StubRequest,
    StubUpstream,
    answers,
    reset,
    response,
    streams,
    stub_upstream,
)

from vision_bench.errors import ConnectFailed
from vision_bench.gateway.fleet import Upstream
from vision_bench.gateway.transport import HttpTransport

PLAIN: Any = {"verify": False, "trust_env": False}
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'


def upstream_of(rig: Rig) -> Upstream:
    upstream: Upstream = rig.app.state.fleet.upstreams[0]
    return upstream


async def post(rig: Rig, body: bytes = b"{}") -> int:
    return (await rig.client.post("/chat", content=body)).status_code


def once(first: Behaviour, then: Behaviour) -> Behaviour:
    """The next request meets ``first``, those after it ``then``."""
    calls = 0

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        await (first if calls == 1 else then)(request, writer)

    return behave


async def resets(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    reset(writer)


async def says_a_little_and_resets(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 2")
    await writer.drain()
    await asyncio.sleep(0.05)
    reset(writer)


@pytest.mark.parametrize(
    ("answer", "is_reused"),
    [
        (answers(), True),
        (answers(status=404), True),
        (answers(status=500), False),
        (answers(status=503), False),
        (streams([EVENT, b"data: [DONE]\n\n"]), True),
    ],
    ids=["200", "404", "500", "503", "stream"],
)
async def test_a_connection_that_carried_a_5xx_is_closed(answer: Behaviour, is_reused: bool) -> None:
    """Everything else that came whole leaves a connection for the next call, and for the list of models."""
    async with stub_upstream(answer) as stub, gateway(stub) as rig:
        for _ in range(3):
            await post(rig)
        await rig.client.get("/v1/models")
        assert stub.total_connections == (1 if is_reused else 4)
        await until(lambda: stub.open_connections == (1 if is_reused else 0))
        assert upstream_of(rig).retries == 0


@pytest.mark.parametrize("size_bytes", [2, 1_600_000])
async def test_a_reset_on_a_kept_connection_is_tried_again_once_and_counted(size_bytes: int) -> None:
    """The body goes out whole a second time, however many pieces it came in."""
    body = os.urandom(size_bytes)
    async with stub_upstream() as stub, gateway(stub) as rig:
        assert await post(rig) == 200
        stub.behaviour = once(resets, answers())
        assert await post(rig, body) == 200
        assert [request.body for request in stub.requests[1:]] == [body, body]
        assert (upstream_of(rig).retries, upstream_of(rig).failures) == (1, 0)

        assert await post(rig) == 200  # over a new connection, for the one of a second try is not kept
        stub.behaviour = resets
        assert await post(rig) == 502
        assert len(stub.requests) == 6, "two tries and no third"
        assert (upstream_of(rig).retries, upstream_of(rig).failures) == (2, 1)


async def test_a_reset_on_a_new_connection_is_not_tried_again() -> None:
    """It says something about the server, not about the connection's age."""
    async with stub_upstream(resets) as stub, gateway(stub) as rig:
        assert await post(rig) == 502
        assert (len(stub.requests), upstream_of(rig).retries) == (1, 0)


async def test_a_reset_after_the_first_byte_is_not_tried_again() -> None:
    """vLLM had begun to answer: it may have done the work."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        assert await post(rig) == 200
        stub.behaviour = once(says_a_little_and_resets, answers())
        assert await post(rig) == 502
        assert (len(stub.requests), upstream_of(rig).retries) == (2, 0)


async def test_the_list_of_models_is_tried_again_too() -> None:
    """A stale connection costs nobody anything."""
    async with stub_upstream(answers({"data": [{"id": "qwen"}]})) as stub, gateway(stub) as rig:
        assert await post(rig) == 200
        stub.behaviour = once(resets, stub.behaviour)
        assert (await rig.client.get("/v1/models")).status_code == 200
        assert upstream_of(rig).retries == 1


@pytest.mark.parametrize("permits", [4, 120])
async def test_there_are_as_many_connections_as_permits(permits: int) -> None:
    """No pool is narrower: all permits run at once, and the second wave finds the connections of the first."""
    release = asyncio.Event()

    async def holds(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await answers()(request, writer)

    async with stub_upstream(holds) as stub, gateway(stub, vllm_concurrency=permits) as rig:
        for _ in range(2):
            release.clear()
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=rig.url, timeout=30, limits=limits, **PLAIN) as many:
                calls = [asyncio.create_task(many.post("/chat", json=BODY)) for _ in range(permits)]
                await until(lambda: stub.running == permits)
                assert rig.admission.waiting == 0
                release.set()
                assert {answer.status_code for answer in await asyncio.gather(*calls)} == {200}
        assert stub.total_connections == permits


async def test_a_server_that_starts_again_between_calls_is_not_noticed() -> None:
    """The kept connections end with the old process; calls to the new one on its port just work."""
    async with stub_upstream() as old, gateway(old) as rig:
        assert await post(rig) == 200
        old.stop()
        async with stub_upstream(port=old.port) as new:
            assert [await post(rig) for _ in range(4)] == [200] * 4
            assert len(new.requests) == 4
        assert upstream_of(rig).failures == 0


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_server_that_starts_again_in_mid_call(is_streamed: bool) -> None:
    """The call ends as a failure, not as a short answer; its permit is back; the next one is answered."""
    slow = streams([EVENT] * 1000, gap_seconds=0.02) if is_streamed else answers(delay_seconds=30)
    async with stub_upstream(slow) as old, gateway(old, vllm_concurrency=1) as rig:
        call = asyncio.create_task(_read(rig, is_streamed))
        await until(lambda: old.running == 1)
        await asyncio.sleep(0.1)
        old.stop()
        outcome = await call
        assert outcome == ("broken" if is_streamed else 502)
        assert rig.admission.in_use == 0
        async with stub_upstream(port=old.port):
            assert await post(rig) == 200


async def _read(rig: Rig, is_streamed: bool) -> int | str:
    if not is_streamed:
        return await post(rig)
    async with rig.client.stream("POST", "/chat", json={**BODY, "stream": True}) as answer:
        seen = b""
        with pytest.raises(httpx.RemoteProtocolError):
            async for piece in answer.aiter_raw():
                seen += piece
    assert b'"error"' in seen
    assert b"[DONE]" not in seen
    return "broken"


async def test_no_connection_outlives_the_gateway() -> None:
    """Kept or in use, all are closed when it stops."""
    stub: StubUpstream
    async with stub_upstream() as stub:
        async with gateway(stub) as rig:
            assert await post(rig) == 200
            assert stub.open_connections == 1
        await until(lambda: stub.open_connections == 0)


async def test_bytes_behind_an_answer_spoil_the_connection() -> None:
    """Nobody knows whose they are: the next call takes another one."""

    async def twice(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"{}") + response(b'{"whose": "?"}'))

    async with stub_upstream(twice) as stub, gateway(stub) as rig:
        for _ in range(3):
            answer = await rig.client.post("/chat", json=BODY)
            assert answer.content == b"{}"
        assert stub.total_connections == 3


async def test_files_that_ran_out_are_not_vllms_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the gateway and the limit to raise."""

    async def no_file(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async with HttpTransport("http://127.0.0.1:9/v1", connect_timeout_seconds=1) as transport:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", no_file)
        with pytest.raises(ConnectFailed, match=r"the gateway has no file left .*EMFILE.*ulimit -n"):
            async with transport.get("/models", {}):
                pass

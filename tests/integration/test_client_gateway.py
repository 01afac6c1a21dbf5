"""The client through a real gateway on loopback sockets: streams as upstreams really break them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.gateway_rig import BODY, gateway, until
from tests.integration.stub_upstream import StubUpstream, answers, by_index, streams, stub_upstream

from vision_bench.client.gateway import GatewayClient
from vision_bench.errors import BrokenStream, ConnectFailed, HttpFailure, VisionBenchError
from vision_bench.wire.chat import read_reply

CASES = json.loads((Path(__file__).parents[1] / "golden" / "wire_cases.json").read_text("utf-8"))["cases"]
NO_CHARSET = "text/event-stream"


@contextlib.asynccontextmanager
async def chain() -> AsyncIterator[tuple[StubUpstream, GatewayClient]]:
    """stub < gateway < client."""
    async with stub_upstream() as stub, gateway(stub) as rig, GatewayClient(rig.url, timeout_seconds=20) as client:
        yield stub, client


def chunks(case: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(chunk) for chunk in case["chunks"]]


def case(name: str) -> list[bytes]:
    return chunks(next(case for case in CASES if case["id"] == name))


@pytest.mark.parametrize("wire_case", CASES, ids=[case["id"] for case in CASES])
async def test_streamed_chat_reads_every_wire_case(wire_case: dict[str, Any]) -> None:
    """Over two sockets and without a charset in the header: the same text, and an error wherever there is one."""
    expect = wire_case["expect"]
    async with chain() as (stub, client):
        stub.behaviour = streams(chunks(wire_case), content_type=NO_CHARSET)
        failure: VisionBenchError | None = None
        async with client.stream_chat(BODY) as stream:
            try:
                text = "".join([delta.text async for delta in stream if delta.kind == "text"])
            except BrokenStream as problem:
                failure, text = problem, stream.reply.text or ""
    assert text == expect["text"]
    assert (failure is None) == (expect["outcome"] == "ok"), failure
    if "completion_tokens" in expect:
        assert (stream.reply.usage or {}).get("completion_tokens") == expect["completion_tokens"]


async def test_answer_is_finished_at_done_though_the_socket_stays_open() -> None:
    """Nobody waits for a server that forgets to hang up, and the permit comes back."""
    async with chain() as (stub, client):
        stub.behaviour = streams(case("after_done"), then="silent")
        began = time.monotonic()
        async with client.stream_chat(BODY) as stream:
            text = "".join([delta.text async for delta in stream])
        assert text == "안녕하세요 뉴스"
        assert time.monotonic() - began < 3
        await until(lambda: stub.running == 0)


async def test_a_reset_in_mid_stream_is_an_error_and_keeps_what_came() -> None:
    """Half an answer is never a whole one."""
    async with chain() as (stub, client):
        stub.behaviour = streams(case("cut_short"), then="reset")
        async with client.stream_chat(BODY) as stream:
            with pytest.raises(BrokenStream):
                async for _ in stream:
                    pass
        assert stream.reply.text == "안녕하세요"


@pytest.mark.parametrize("name", ["error_first", "error_mid", "empty_200"])
async def test_an_unasked_stream_is_no_answer_in_chat(name: str) -> None:
    """`stream: false` answered with events, or with nothing: an error that says so."""
    async with chain() as (stub, client):
        stub.behaviour = streams(case(name), content_type=NO_CHARSET)
        with pytest.raises(BrokenStream, match=r"event stream|empty"):
            await client.chat(BODY)
        stub.behaviour = answers({"error": {"message": "EngineCore encountered an issue", "code": None}})
        with pytest.raises(BrokenStream, match="EngineCore encountered an issue"):
            await client.chat(BODY)


async def test_in_a_batch_each_failure_is_its_own_lines() -> None:
    """An unasked stream, an empty 200, an error object and a 400: four failed lines, and the good ones stay good."""
    async with chain() as (stub, client):
        stub.behaviour = by_index(
            {
                0: streams(case("plain"), content_type=NO_CHARSET),
                1: answers(b""),
                2: answers({"error": {"message": "EngineCore encountered an issue", "code": None}}),
                3: answers({"error": {"message": "Could not open video stream"}}, status=400),
            },
            answers(),
        )
        lines = {line.id: line async for line in client.batch([(f"c{index}", BODY) for index in range(6)])}
    assert len(lines) == 6
    for name in ("c0", "c1", "c2", "c3"):
        line = lines[name]
        assert line.status != 200 and line.error and line.body is None
    assert (lines["c3"].status, lines["c3"].error) == (400, "Could not open video stream")
    assert all(read_reply(lines[name].body).text == "안녕" for name in ("c4", "c5"))


async def test_leaving_a_batch_frees_the_models_and_the_permits() -> None:
    """After the first line the caller goes; running calls are cancelled, waiting ones never sent."""
    async with stub_upstream() as stub, gateway(stub) as rig, GatewayClient(rig.url) as client:
        stub.behaviour = by_index({0: answers()}, answers(delay_seconds=30))
        async with contextlib.aclosing(client.batch([(f"c{index}", BODY) for index in range(12)])) as lines:
            async for line in lines:
                assert line.id == "c0"
                break
        await until(lambda: stub.running == 0)
        sent = len(stub.requests)
        await asyncio.sleep(0.2)
        assert len(stub.requests) == sent < 12


async def test_cancelling_a_chat_cancels_the_model() -> None:
    """A task that is cancelled leaves nothing running behind it."""
    async with chain() as (stub, client):
        stub.behaviour = answers(delay_seconds=30)
        call = asyncio.create_task(client.chat(BODY))
        await until(lambda: stub.running == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: stub.running == 0)


async def test_gateway_without_a_model_is_retried_and_then_named() -> None:
    """502 is tried three times; the message is the gateway's own."""
    async with gateway("http://127.0.0.1:9/v1") as rig, GatewayClient(rig.url) as client:
        with pytest.raises(HttpFailure) as caught:
            await client.chat(BODY)
        assert caught.value.status == 502
        await client.check()


async def test_nobody_at_the_address_is_a_connect_failure() -> None:
    """The message holds the address."""
    async with GatewayClient("http://127.0.0.1:9") as client:
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:9"):
            await client.check()

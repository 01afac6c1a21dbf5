"""A large body of a caller who is alone goes on to vLLM while it comes, and nothing else changes by it."""

from __future__ import annotations

import asyncio
import os
from itertools import pairwise
from typing import Any

import pytest
from tests.integration.gateway_rig import BODY, Rig, caller, gateway, until, upload_head
from tests.integration.stub_upstream import StubRequest, StubUpstream, answers, reset, response, stub_upstream

from vision_bench.gateway import ahead

CLIP = os.urandom(1_600_000)
CUT = 1_200_000


@pytest.fixture(autouse=True)
def the_end_is_always_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests stand still in the middle of a body."""
    monkeypatch.setattr(ahead, "SOON_SECONDS", 1e9)


async def ready(rig: Rig) -> None:
    """Leave one connection to vLLM that can be used again."""
    assert (await rig.client.post("/chat", json=BODY)).status_code == 200


def clips(stub: StubUpstream) -> list[StubRequest]:
    return [request for request in stub.requests if len(request.body) == len(CLIP)]


async def test_the_call_begins_before_the_body_is_whole_and_without_a_permit() -> None:
    """vLLM has the head while the body still comes; it gets every byte, in order, over the connection that was there,
    with the headers of any other call."""
    async with stub_upstream() as stub, gateway(stub, vllm_api_key="key") as rig, caller(rig) as lone:
        await ready(rig)
        await lone.send(upload_head("/chat", len(CLIP)) + CLIP[:CUT])
        await until(lambda: stub.begun == 2)
        assert rig.admission.in_use == 0
        await lone.send(CLIP[CUT:])
        assert (await lone.answer())[0] == 200
        small, large = stub.requests
        assert large.body == CLIP
        for request in (small, large):
            del request.headers["content-length"], request.headers["x-request-id"], request.headers["content-type"]
        assert large.headers == small.headers
        assert large.headers["authorization"] == "Bearer key"
        assert stub.total_connections == 1


@pytest.mark.parametrize("settings", [{}, {"vllm_concurrency": 1}])
async def test_with_another_call_under_way_nothing_goes_ahead(settings: dict[str, Any]) -> None:
    """Not even with a permit free: one after the other is faster then."""
    release = asyncio.Event()

    async def holds(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await answers()(request, writer)

    async with stub_upstream() as stub, gateway(stub, **settings) as rig, caller(rig) as second:
        await ready(rig)
        stub.behaviour = holds
        first = asyncio.create_task(rig.client.post("/chat", json=BODY))
        await until(lambda: stub.running == 1)
        stub_saw = stub.begun
        await second.send(upload_head("/chat", len(CLIP)) + CLIP[:-1])
        await until(lambda: rig.app.state.buffer.held_bytes > len(CLIP))
        await asyncio.sleep(0.1)
        assert stub.begun == stub_saw
        release.set()
        await second.send(CLIP[-1:])
        assert (await second.answer())[0] == 200
        assert (await first).status_code == 200


@pytest.mark.parametrize(
    ("head", "others", "settings"),
    [
        (upload_head("/chat", len(CLIP)), "", {"gateway_media_domains": "example.com"}),
        (upload_head("/chat", len(CLIP)), ",http://127.0.0.1:9/v1", {}),
        (b"POST /chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(CLIP), "", {}),
    ],
    ids=["a body that is looked at", "several servers", "unknown length"],
)
async def test_what_is_not_known_before_the_last_byte_is_waited_for(
    head: bytes, others: str, settings: dict[str, Any]
) -> None:
    """Whether the body may pass, where it goes, how long it is."""
    async with (
        stub_upstream() as stub,
        gateway(stub.base_url + others, **settings) as rig,
        caller(rig) as lone,
    ):
        await ready(rig)
        await lone.send(head + CLIP[:CUT])
        await asyncio.sleep(0.1)
        assert stub.begun == 1


async def test_a_caller_who_leaves_takes_the_half_request_along() -> None:
    """vLLM sees its connection end, no permit was ever out, and the next call finds everything in order."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        await ready(rig)
        async with caller(rig) as lone:
            await lone.send(upload_head("/chat", len(CLIP)) + CLIP[:CUT])
            await until(lambda: stub.begun == 2)
        await until(lambda: stub.open_connections == 0)
        assert (rig.admission.in_use, rig.app.state.buffer.held_bytes) == (0, 0)
        await ready(rig)
        assert not clips(stub)


@pytest.mark.parametrize("steps", [[CUT], [CUT, CUT + 100_000, CUT + 200_000]], ids=["last piece", "more pieces"])
async def test_a_connection_that_went_stale_meanwhile_is_replaced_with_the_whole_body(steps: list[int]) -> None:
    """As for any call: once, counted, and vLLM gets all of it, however much came after the connection had ended."""
    async with stub_upstream() as stub, gateway(stub) as rig, caller(rig) as lone:
        await ready(rig)
        await lone.send(upload_head("/chat", len(CLIP)) + CLIP[:CUT])
        await until(lambda: stub.begun == 2)
        for task in tuple(stub._tasks):
            task.cancel()
        await until(lambda: stub.open_connections == 0)
        for start, end in pairwise([*steps, len(CLIP)]):
            await asyncio.sleep(0.05)  # a piece of its own
            await lone.send(CLIP[start:end])
        assert (await lone.answer())[0] == 200
        assert [request.body == CLIP for request in clips(stub)] == [True]
        assert rig.app.state.fleet.upstreams[0].retries == 1


async def test_what_lies_at_vllm_too_long_is_broken_off_and_sent_whole_when_it_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A caller who stands still after all: vLLM has no half request of his, and he gets his answer as ever."""
    monkeypatch.setattr(ahead, "PATIENCE_SECONDS", 0.2)
    async with stub_upstream() as stub, gateway(stub) as rig, caller(rig) as lone:
        await ready(rig)
        await lone.send(upload_head("/chat", len(CLIP)) + CLIP[:CUT])
        await until(lambda: stub.begun == 2)
        await until(lambda: stub.open_connections == 0)
        for start, end in pairwise([CUT, CUT + 100_000, len(CLIP)]):
            await lone.send(CLIP[start:end])
            await asyncio.sleep(0.05)
        assert (await lone.answer())[0] == 200
        assert [request.body == CLIP for request in clips(stub)] == [True]
        assert rig.app.state.fleet.upstreams[0].retries == 0


async def test_behind_a_queue_the_body_goes_out_whole_when_its_turn_comes() -> None:
    """The only permit was taken meanwhile: the half request is broken off instead of lying at vLLM."""
    release = asyncio.Event()

    async def holds(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await answers()(request, writer)

    async with stub_upstream() as stub, gateway(stub, vllm_concurrency=1) as rig, caller(rig) as lone:
        await ready(rig)
        await lone.send(upload_head("/chat", len(CLIP)) + CLIP[:CUT])
        await until(lambda: stub.begun == 2)
        stub.behaviour = holds
        other = asyncio.create_task(rig.client.post("/chat", json=BODY))
        await until(lambda: stub.running == 1)
        await lone.send(CLIP[CUT:])
        await until(lambda: stub.open_connections == 1)
        assert rig.admission.waiting == 1
        release.set()
        assert (await lone.answer())[0] == 200
        assert (await other).status_code == 200
        assert [request.body == CLIP for request in clips(stub)] == [True]


async def test_an_answer_that_comes_before_the_body_is_whole_is_passed_on() -> None:
    """A proxy that refuses early: its status reaches the caller, and its connection is not used again."""

    async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response(b"{}"))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response(b'{"error": "no"}', status=413, extra=["Connection: close"]))
        await reader.readexactly(len(CLIP))
        writer.close()

    server = await asyncio.start_server(refuses, "127.0.0.1", 0, limit=1 << 26)
    async with server, gateway(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1") as rig, caller(rig) as lone:
        assert (await rig.client.post("/chat", content=b"")).status_code == 200
        await lone.send(upload_head("/chat", len(CLIP)) + CLIP[:CUT])
        await asyncio.sleep(0.05)
        await lone.send(CLIP[CUT:])
        assert (await lone.answer())[0] == 413
        assert rig.app.state.fleet.upstreams[0].retries == 0


async def test_a_reset_after_the_last_piece_is_tried_again_once_as_ever() -> None:
    """A server that resets every connection is asked twice, not for ever."""

    async def resets(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        reset(writer)

    async with stub_upstream() as stub, gateway(stub) as rig, caller(rig) as lone:
        await ready(rig)
        stub.behaviour = resets
        await lone.send(upload_head("/chat", len(CLIP)) + CLIP[:CUT])
        await until(lambda: stub.begun == 2)
        await lone.send(CLIP[CUT:])
        assert (await lone.answer())[0] == 502
        assert len(clips(stub)) == 2

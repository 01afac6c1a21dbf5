"""Several upstreams over real sockets: servers that stop, restart, break and are busy."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.integration.gateway_rig import BODY, Rig, gateway, items, until
from tests.integration.stub_upstream import (
    StubRequest,
    StubUpstream,
    answers,
    reset,
    response,
    stream_head,
    streams,
    stub_upstream,
)

from vision_bench.gateway.fleet import Fleet

EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'


@asynccontextmanager
async def two(**settings: Any) -> AsyncIterator[tuple[StubUpstream, StubUpstream, Rig]]:
    """Two stubs and a gateway in front of both."""
    async with (
        stub_upstream() as first,
        stub_upstream() as second,
        gateway(f"{first.base_url}, {second.base_url}", **settings) as rig,
    ):
        yield first, second, rig


def fleet_of(rig: Rig) -> Fleet:
    fleet: Fleet = rig.app.state.fleet
    return fleet


def chats(stub: StubUpstream) -> list[StubRequest]:
    """Its requests without the probes."""
    return [request for request in stub.requests if request.path == "/v1/chat/completions"]


async def breaks(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    reset(writer)


async def breaks_in_the_body(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    await writer.drain()
    await asyncio.sleep(0.02)
    reset(writer)


async def breaks_before_the_first_event(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(stream_head())
    await writer.drain()
    await asyncio.sleep(0.02)
    reset(writer)


async def test_permits_are_per_server_and_the_queue_is_one() -> None:
    """Two permits each: four calls at once of twelve, two at each server, in the order of asking."""
    async with two(vllm_concurrency=2) as (first, second, rig):
        first.behaviour = second.behaviour = answers(delay_seconds=0.1)
        calls = [asyncio.create_task(rig.client.post("/chat", json=BODY)) for _ in range(12)]
        await until(lambda: rig.admission.waiting == 8)
        assert (rig.admission.in_use, rig.admission.permits) == (4, 4)
        assert [upstream.in_use for upstream in fleet_of(rig).upstreams] == [2, 2]
        assert [answer.status_code for answer in await asyncio.gather(*calls)] == [200] * 12
        assert (first.most_running, second.most_running) == (2, 2)
        assert len(first.requests) + len(second.requests) == 12


@pytest.mark.parametrize(
    "failure",
    [breaks, breaks_in_the_body, breaks_before_the_first_event, answers(b"busy", status=503), answers(status=502)],
    ids=["no head", "half a body", "no event", "503", "502"],
)
async def test_a_failed_call_is_answered_by_the_other_server(failure: Any) -> None:
    """Whatever the first one did before the caller had a byte: a 200 with the same bytes, one move, one set aside."""
    async with two() as (first, second, rig):
        first.behaviour = failure
        body = b'{ "as": "it stands" }'
        answer = await rig.client.post("/chat", content=body)
        assert answer.status_code == 200
        assert [request.body for request in (*first.requests, *second.requests)] == [body, body]
        assert fleet_of(rig).moves == 1
        assert [upstream.is_set_aside for upstream in fleet_of(rig).upstreams] == [True, False]
        assert rig.admission.in_use == 0


async def test_a_stream_that_has_begun_does_not_move() -> None:
    """The caller has an event: a second answer behind it would be a lie. The server did answer: it stays in service."""
    async with two() as (first, second, rig):
        first.behaviour = streams([EVENT], then="reset")
        async with rig.client.stream("POST", "/chat", json={**BODY, "stream": True}) as answer:
            with pytest.raises(Exception, match="incomplete chunked read"):
                await answer.aread()
        assert (fleet_of(rig).moves, second.requests) == (0, [])
        assert (fleet_of(rig).upstreams[0].failures, fleet_of(rig).upstreams[0].is_set_aside) == (1, False)


async def test_every_item_of_a_batch_has_its_answer() -> None:
    """One server breaks whatever it gets: twelve lines of 200, one each."""
    async with two() as (first, second, rig):
        first.behaviour = breaks
        lines = await rig.batch(items(12))
        assert sorted(line["id"] for line in lines) == sorted(item["id"] for item in items(12))
        assert {line["status"] for line in lines} == {200}
        assert len(second.requests) == 12
        assert fleet_of(rig).moves == len(chats(first)) <= 4


async def test_a_server_that_stops_and_starts_again_comes_back() -> None:
    """Its connections go; calls go to the other one; a second after it listens again it gets calls."""
    async with two() as (stays, goes, rig):
        for _ in range(4):
            assert (await rig.client.post("/chat", json=BODY)).status_code == 200
        assert len(goes.requests) == 2
        goes.stop()
        for _ in range(6):
            assert (await rig.client.post("/chat", json=BODY)).status_code == 200
        assert (len(stays.requests), fleet_of(rig).moves) == (8, 1)
        async with stub_upstream(port=goes.port) as again:
            await until(lambda: not fleet_of(rig).upstreams[1].is_set_aside, within_seconds=5)
            for _ in range(2):
                assert (await rig.client.post("/chat", json=BODY)).status_code == 200
            assert len(chats(again)) == 1


async def test_nobody_there_is_a_502_at_once() -> None:
    """Both stopped: each call fails in a moment with the address, and none waits for a probe."""
    async with two() as (first, second, rig):
        for stub in (first, second):
            stub.stop()
        began = time.monotonic()
        for _ in range(4):
            answer = await rig.client.post("/chat", json=BODY)
            assert (answer.status_code, answer.json()["error"]["type"]) == (502, "connect_failed")
        assert time.monotonic() - began < 5
        assert rig.admission.in_use == rig.admission.waiting == 0


async def test_a_caller_that_leaves_in_its_second_try_takes_nothing_with_it() -> None:
    """The first server breaks, the second is slow, the caller goes: both connections closed, all permits there."""
    async with two() as (first, second, rig):
        first.behaviour, second.behaviour = breaks, answers(delay_seconds=30)
        dropped = asyncio.create_task(rig.dropped_call("/chat", BODY, after_seconds=0.3))
        await until(lambda: second.running == 1)
        await dropped
        await until(lambda: second.abandoned == 1 and rig.admission.in_use == 0, within_seconds=3)
        assert second.open_connections == 0


async def test_stopping_the_gateway_ends_the_probes() -> None:
    """A server that is set aside does not keep the gateway up, and is asked no more."""
    async with two() as (first, _, rig):
        first.behaviour = breaks
        await rig.client.post("/chat", json=BODY)
        assert fleet_of(rig).upstreams[0].is_set_aside
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert not [task for task in asyncio.all_tasks() if "Fleet._probe" in repr(task)]


async def test_both_lists_of_models_are_one() -> None:
    """Over the wire, with one server that has gone."""
    async with two() as (first, second, rig):
        first.behaviour = answers({"data": [{"id": "a", "root": "/srv/a"}]})
        second.behaviour = answers({"data": [{"id": "b", "root": "/srv/b"}, {"id": "a"}]})
        answer = await rig.client.get("/v1/models")
        assert [card["id"] for card in answer.json()["data"]] == ["a", "b"]
        assert "/srv" not in answer.text
        second.stop()
        assert [card["id"] for card in (await rig.client.get("/v1/models")).json()["data"]] == ["a"]


async def test_every_server_gets_the_key_and_the_request_id() -> None:
    """The second try is the same call under the same id."""
    async with two(vllm_api_key="theirs") as (first, second, rig):
        first.behaviour = answers(json.dumps({"error": {"message": "busy"}}).encode(), status=503)
        await rig.client.post("/chat", json=BODY, headers={"X-Request-Id": "mine"})
    for stub in (first, second):
        (request,) = chats(stub)
        assert (request.headers["authorization"], request.headers["x-request-id"]) == ("Bearer theirs", "mine")


async def test_a_503_with_nowhere_else_to_go_is_passed_on() -> None:
    """Bytes, status and Retry-After as they are."""

    async def busy(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"busy here", status=503, content_type="text/plain", extra=["Retry-After: 7"]))

    async with two() as (first, second, rig):
        first.behaviour = second.behaviour = busy
        answer = await rig.client.post("/chat", json=BODY)
        assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (503, b"busy here", "7")
        assert fleet_of(rig).moves == 1

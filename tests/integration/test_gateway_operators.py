"""What operators see of a request on the wire: times and traces."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.integration.gateway_rig import BODY, gateway, items
from tests.integration.stub_upstream import answers, streams, stub_upstream

TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
}


def times(answer: Any) -> dict[str, float]:
    """Server-Timing as a table."""
    (value,) = answer.headers.get_list("server-timing")
    return {name: float(dur) for name, _, dur in (part.strip().partition(";dur=") for part in value.split(","))}


async def test_a_trace_goes_on_as_it_came() -> None:
    """With a call and with every item of a batch; an invalid one goes nowhere, and the call is made."""
    async with stub_upstream() as upstream, gateway(upstream) as rig:
        await rig.client.post("/chat", json=BODY, headers=TRACE)
        await rig.batch(items(3), headers=TRACE)
        for request in upstream.requests:
            assert {name: request.headers.get(name) for name in TRACE} == TRACE
        assert len(upstream.requests) == 4
        bad = TRACE | {"traceparent": "00-0-0-0"}
        assert (await rig.client.post("/chat", json=BODY, headers=bad)).status_code == 200
        assert not TRACE.keys() & upstream.requests[-1].headers.keys()


async def test_the_total_is_more_than_its_parts() -> None:
    """Of a call that waited for another one: queue and upstream are in the total, and little else."""
    async with stub_upstream(answers(delay_seconds=0.2)) as upstream, gateway(upstream, vllm_concurrency=1) as rig:
        both = await asyncio.gather(*(rig.client.post("/chat", json=BODY) for _ in range(2)))
    for answer in both:
        parts = times(answer)
        assert list(parts) == ["queue", "upstream", "total"]
        assert parts["total"] >= parts["queue"] + parts["upstream"] - 0.2  # each is rounded
    assert max(times(answer)["total"] for answer in both) >= 400


async def test_a_stream_says_when_its_first_chunk_was_there() -> None:
    """Not its end: the headers leave before it."""
    events = [b"data: 1\n\n", b"data: 2\n\n"]
    async with stub_upstream(streams(events, gap_seconds=0.5)) as upstream, gateway(upstream) as rig:
        answer = await rig.client.post("/chat", json={**BODY, "stream": True})
    assert times(answer)["upstream"] < 500 <= answer.elapsed.total_seconds() * 1e3


async def test_a_batch_says_what_was_known_when_its_head_left() -> None:
    """No item was done: a total alone. The first was done while the rest was on its way: its queue and its call."""
    async with stub_upstream(answers(delay_seconds=0.1)) as upstream, gateway(upstream) as rig:
        answer = await rig.client.post("/chat/batch", json={"items": items(2)})
        assert list(times(answer)) == ["total"]

        async def slowly() -> Any:
            yield b'{"items": [{"id": "a", "body": {}},'
            await asyncio.sleep(0.5)
            yield b'{"id": "b", "body": {}}]}'

        answer = await rig.client.post("/chat/batch", content=slowly())
        parts = times(answer)
        assert list(parts) == ["queue", "upstream", "total"]
        assert 100 <= parts["upstream"] < 500 <= parts["total"]

"""/metrics after a known mix of requests: every count is exact."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.integration.gateway_rig import BODY, Rig, gateway, items, until
from tests.integration.stub_upstream import StubRequest, StubUpstream, answers, by_index, reset, streams, stub_upstream

PREFIX = "vision_bench_gateway_"


class Page:
    """A scrape, and sums over it."""

    def __init__(self, text: str) -> None:
        self._samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The sum of all samples of a name that carry these labels."""
        return sum(
            sample.value
            for sample in self._samples
            if sample.name == PREFIX + name and labels.items() <= sample.labels.items()
        )

    def by(self, name: str, *labels: str) -> dict[Any, int]:
        """Counts that are not zero, by the values of these labels."""
        found = {
            tuple(s.labels[label] for label in labels): int(s.value) for s in self._samples if s.name == PREFIX + name
        }
        return {key[0] if len(key) == 1 else key: value for key, value in found.items() if value}


async def scrape(rig: Rig) -> Page:
    return Page((await rig.client.get("/metrics")).text)


async def settled(rig: Rig) -> Page:
    """A scrape after the last request has been counted: an answer is read a moment before."""
    metrics = rig.app.state.metrics
    await until(lambda: metrics.in_progress == 0)
    return await scrape(rig)


async def test_a_known_mix_gives_these_counts() -> None:
    """Good, refused, failing, streamed, broken and left calls, a batch with failures: each once, where it belongs."""
    async with stub_upstream() as upstream, gateway(upstream, vllm_concurrency=2) as rig:
        sizes = await run_the_mix(rig, upstream)
        page = await settled(rig)
        assert page.by("requests_total", "route", "status_class", "outcome") == {
            ("/healthz", "2xx", "ok"): 1,
            ("other", "4xx", "not_found"): 1,
            ("/chat", "2xx", "ok"): 3,  # two plain ones, a stream
            ("/chat", "4xx", "http_error"): 1,
            ("/chat", "5xx", "http_error"): 1,
            ("/chat", "5xx", "truncated"): 1,
            ("/chat", "2xx", "truncated"): 1,
            ("/chat", "4xx", "client_left"): 1,
            ("/chat", "2xx", "client_left"): 1,
            ("/chat/batch", "2xx", "ok"): 1,
            ("/chat/batch", "4xx", "invalid_request"): 1,
        }
        assert page.by("batch_items_total", "outcome") == {"ok": 2, "http_error": 1, "truncated": 1}
        assert page.by("client_disconnects_total", "stage") == {"upstream": 1, "answer": 1}
        assert page.value("request_body_bytes_total") == sizes["sent"]
        assert page.value("response_body_bytes_total", route="/chat") == sizes["chat_answers"]
        # 9 of /chat that were not refused by us, 4 of the batch; two broke before a head
        assert page.value("queue_wait_seconds_count") == page.value("upstream_duration_seconds_count") == 13
        assert page.value("upstream_head_seconds_count") == 10
        assert page.value("stream_first_byte_seconds_count") == 3
        assert page.value("request_duration_seconds_count") == page.value("requests_total") == 13
        assert page.value("requests_in_progress") == 1  # the scrape itself
        for gauge in ("permits_in_use", "queue_length", "buffered_bytes", "requests_waiting_for_room"):
            assert page.value(gauge) == 0, gauge
        assert (page.value("permits"), page.value("buffer_limit_bytes")) == (2, 512 * 1024 * 1024)
        assert page.value("permits_in_use", upstream=upstream.base_url) == 0


async def run_the_mix(rig: Rig, upstream: StubUpstream) -> dict[str, int]:
    """Every kind of request once. Returns the bytes of bodies that went each way."""
    sent, answered = 0, 0

    async def chat(behaviour: Any) -> None:
        nonlocal sent, answered
        upstream.behaviour = behaviour
        async with rig.client.stream("POST", "/chat", json=BODY) as answer:
            sent += len(answer.request.content)
            try:
                async for chunk in answer.aiter_raw():
                    answered += len(chunk)
            except Exception as problem:  # a broken stream: what came before counts
                assert "incomplete" in str(problem)

    await rig.client.get("/healthz")
    await rig.client.get("/nope")
    await chat(answers())
    await chat(answers())
    await chat(answers({"error": {"message": "bad"}}, status=400))
    await chat(answers({"error": {"message": "bad"}}, status=500))
    await chat(streams([b"data: 1\n\n", b"data: 2\n\n"]))
    await chat(streams([b"data: 1\n\n"], then="reset"))
    await chat(breaks)
    upstream.behaviour = answers(delay_seconds=60)
    await rig.dropped_call("/chat", b"{}", after_seconds=0.2)
    upstream.behaviour = streams([b"data: 1\n\n"], then="silent")
    await rig.dropped_call("/chat", b"{}", after_bytes=b"data: 1")
    await until(lambda: rig.app.state.metrics.in_progress == 0)
    sent, answered = sent + 4, answered + len(b"data: 1\n\n")
    upstream.behaviour = by_index({1: answers({"error": {"message": "no"}}, status=400), 2: breaks}, answers())
    batch = await rig.client.post("/chat/batch", json={"items": items(4)})
    refused = await rig.client.post("/chat/batch", content=b'{"items": [{"id": 1}]}')
    assert (batch.status_code, refused.status_code) == (200, 400)
    sent += len(batch.request.content) + len(refused.request.content)
    return {"sent": sent, "chat_answers": answered}


async def breaks(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    """Cut the connection before a byte of an answer."""
    reset(writer)


async def test_gauges_show_the_moment() -> None:
    """Two run, one stands in the queue, one is not read for want of room; then all their callers leave."""
    async with (
        stub_upstream(answers(delay_seconds=60)) as upstream,
        gateway(upstream, vllm_concurrency=2, gateway_max_body_bytes=1000, gateway_buffer_bytes=1000) as rig,
    ):
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(rig.client.post("/chat", content=b"x" * 250)) for _ in range(3)]
            await until(lambda: rig.admission.waiting == 1)
            calls.append(group.create_task(rig.client.post("/chat", content=b"x" * 900)))
            await until(lambda: rig.app.state.buffer.waiting == 1)
            page = await scrape(rig)
            for call in (calls[2], *calls):  # or it would have a permit for a moment, left by another
                call.cancel()
                await until(lambda: rig.admission.waiting == 0)
        assert (page.value("permits_in_use"), page.value("queue_length")) == (2, 1)
        assert (page.value("buffered_bytes"), page.value("requests_waiting_for_room")) == (750, 1)
        assert page.value("requests_in_progress") == 5
        after = await settled(rig)
        assert after.by("client_disconnects_total", "stage") == {"upload": 1, "queue": 1, "upstream": 2}


async def test_a_batch_whose_caller_leaves_counts_its_items_as_cancelled() -> None:
    """Those that had finished stay what they were; none is counted twice."""
    async with stub_upstream() as upstream, gateway(upstream, vllm_concurrency=2) as rig:
        upstream.behaviour = by_index({0: answers()}, answers(delay_seconds=60))
        await rig.dropped_call("/chat/batch", {"items": items(5)}, after_bytes=b"clip-0")
        page = await settled(rig)
        assert page.by("batch_items_total", "outcome") == {"ok": 1, "cancelled": 4}


async def test_a_stale_connection_is_a_retry() -> None:
    """The counter of the transport is on the page, under the address of its vLLM."""
    async with stub_upstream() as upstream, gateway(upstream) as rig:
        upstream.closes_silently = True
        for _ in range(5):
            await rig.client.post("/chat", json=BODY)
        page = await settled(rig)
        assert (
            page.value("upstream_retries_total", upstream=upstream.base_url) == rig.app.state.fleet.upstreams[0].retries
        )


@pytest.mark.parametrize("path", ["/chat", "/chat/batch"])
async def test_what_is_too_large_counts_what_was_read(path: str) -> None:
    """A body that is refused by its length has no bytes."""
    async with stub_upstream() as upstream, gateway(upstream, gateway_max_body_bytes=1000) as rig:
        answer = await rig.client.post(path, content=b"x" * 1001)
        page = await settled(rig)
        assert answer.status_code == 413
        assert page.by("requests_total", "route", "outcome") == {(path, "too_large"): 1}
        assert page.value("request_body_bytes_total") == 0

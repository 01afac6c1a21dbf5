"""Streams, queues and clients that leave, over real sockets."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from tests.integration.engine_rig import CHAT, HELLO, declared, events

from vision_bench.engine.chat.declared.settings import Latencies
from vision_bench.engine.chat.settings import EngineSettings

SLOW = Latencies(preprocess_ms=0, encoder_ms=0, prefill_ms=0, decode_ms=20)
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"


async def test_each_token_is_its_own_event_and_the_finish_reason_rides_on_the_last() -> None:
    """Five tokens: a role chunk, five with text, usage, [DONE]; only the last text chunk has a finish reason."""
    async with declared(tokens=5) as rig:
        body = HELLO | {"stream": True, "stream_options": {"include_usage": True}}
        found = events((await rig.ask(body)).content)
    role, *texts, usage, done = found
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(texts) == 5 and all(chunk["choices"][0]["delta"]["content"] for chunk in texts)
    assert [chunk["choices"][0]["finish_reason"] for chunk in texts] == [None] * 4 + ["stop"]
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 5
    assert done == "[DONE]"
    assert not any("usage" in chunk for chunk in [role, *texts])


async def test_a_streams_usage_chunk_holds_the_times_of_the_request() -> None:
    """With per-request metrics, and for one choice; as in vLLM the time to the first token begins with the scheduling,
    so that it and the decoding are the time in which the tokens of a second are counted."""
    async with declared(EngineSettings(per_request_metrics=True), latencies=SLOW, tokens=4) as rig:
        body = HELLO | {"stream": True, "stream_options": {"include_usage": True}}
        *_, usage, _ = events((await rig.ask(body)).content)
        told = usage["metrics"]
        inference_ms = told["time_to_first_token_ms"] + told["generation_time_ms"]
        assert inference_ms == pytest.approx(4 / told["tokens_per_second"] * 1000)
        assert told["queue_time_ms"] >= 0
        whole = (await rig.ask(HELLO)).json()["metrics"]
        assert set(whole) == set(told)
        *_, several, _ = events((await rig.ask(body | {"n": 2})).content)
        assert "metrics" not in several
        *_, untold, _ = events((await rig.ask(body | {"stream_options": {}})).content)
        assert "metrics" not in untold


async def test_streamed_text_is_the_text_of_the_whole_answer() -> None:
    """Streaming changes nothing but the packaging."""
    async with declared() as rig:
        body = HELLO | {"messages": [{"role": "user", "content": "무엇이 보입니까?"}]}
        whole = (await rig.ask(body)).json()["choices"][0]["message"]["content"]
        chunks = events((await rig.ask(body | {"stream": True})).content)[:-1]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == whole


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_stop_string_ends_the_answer_and_is_left_out(is_streamed: bool) -> None:
    """`stop` names what ended it in stop_reason; text before it is whole, the string itself is not there."""
    async with declared() as rig:
        answer = await rig.ask(HELLO | {"stop": ["timing"], "stream": is_streamed})
        choices = [chunk["choices"][0] for chunk in events(answer.content)[:-1]] if is_streamed else []
        choice = choices[-1] if is_streamed else answer.json()["choices"][0]
        text = "".join(c["delta"]["content"] for c in choices) if is_streamed else choice["message"]["content"]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "timing")
    assert text == "This is a declared answer: its "


async def test_two_choices_each_get_a_role_and_an_ending() -> None:
    """n=2 streams two choices, each whole, and usage counts both."""
    async with declared(tokens=3) as rig:
        body = HELLO | {"n": 2, "stream": True, "stream_options": {"include_usage": True}}
        *chunks, usage, _ = events((await rig.ask(body)).content)
        whole = (await rig.ask(HELLO | {"n": 2})).json()
    for index in (0, 1):
        own = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == index]
        assert own[0]["delta"].get("role") == "assistant"
        assert len(own) == 4 and own[-1]["finish_reason"] == "stop"
    assert usage["usage"]["completion_tokens"] == 6
    assert [choice["index"] for choice in whole["choices"]] == [0, 1]


async def test_tokens_per_chunk_packs_tokens_but_counts_them_all() -> None:
    """Seven tokens, three a chunk: three text chunks, seven completion tokens."""
    async with declared(EngineSettings(tokens_per_chunk=3), tokens=7) as rig:
        body = HELLO | {"stream": True, "stream_options": {"include_usage": True}}
        found = events((await rig.ask(body)).content)
    assert len(found) == 1 + 3 + 2
    assert found[-2]["usage"]["completion_tokens"] == 7


async def test_immediate_role_chunk_comes_before_the_first_token_is_made() -> None:
    """With the trap set, headers and role are there while the model still prefills."""
    late = Latencies(preprocess_ms=0, encoder_ms=0, prefill_ms=60_000, decode_ms=0)
    streamed = HELLO | {"stream": True}
    async with (
        declared(EngineSettings(role_chunk="immediate"), latencies=late) as rig,
        rig.client.stream("POST", CHAT, json=streamed) as response,
    ):
        first = await asyncio.wait_for(anext(response.aiter_bytes()), 10)
    assert b'"role":"assistant"' in first


async def test_client_that_leaves_gives_its_slot_back() -> None:
    """A stream is dropped after its first event: the running gauge is 0 long before the answer would have ended."""
    async with declared(latencies=SLOW, tokens=2000) as rig:
        async with rig.client.stream("POST", CHAT, json=HELLO | {"stream": True}) as response:
            await anext(response.aiter_bytes())
            assert await rig.gauge(RUNNING) == 1
        assert await rig.shows(RUNNING, 0)
        (record,) = await rig.truth()
    assert record["outcome"] == "client_left"
    assert record["tokens"] < 2000


async def test_plain_request_that_is_dropped_while_it_waits_leaves_the_queue() -> None:
    """One slot, two requests; the waiting one gives up and the gauge falls, the running one goes on."""
    async with declared(EngineSettings(max_num_seqs=1), latencies=SLOW, tokens=2000) as rig:
        running = asyncio.create_task(rig.ask(HELLO))
        assert await rig.shows(RUNNING, 1)
        waiting = asyncio.create_task(rig.ask(HELLO))
        assert await rig.shows(WAITING, 1)
        waiting.cancel()
        assert await rig.shows(WAITING, 0)
        assert await rig.gauge(RUNNING) == 1
        running.cancel()
        assert await rig.shows(RUNNING, 0)
        await asyncio.gather(running, waiting, return_exceptions=True)


async def test_full_queue_is_503_without_retry_after_and_counted() -> None:
    """One slot, one may wait: the third is refused at once, in vLLM's words."""
    settings = EngineSettings(max_num_seqs=1, max_num_queued_reqs=1)
    async with declared(settings, latencies=SLOW, tokens=2000) as rig:
        held = [asyncio.create_task(rig.ask(HELLO)) for _ in range(2)]
        assert await rig.shows(WAITING, 1)
        refused = await rig.ask(HELLO)
        rejections = await rig.gauge("vllm:admission_rejections_total")
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
    assert refused.status_code == 503
    assert refused.json()["error"]["type"] == "Service Unavailable"
    assert "retry-after" not in refused.headers
    assert rejections == 1


async def test_slots_are_given_in_order_of_arrival() -> None:
    """One slot, four requests: they are scheduled in the order in which they came."""
    async with declared(EngineSettings(max_num_seqs=1), latencies=SLOW, tokens=60) as rig:
        tasks = []
        for number in range(4):
            body = HELLO if number == 0 else HELLO | {"max_tokens": 1}  # the first runs until all have come
            tasks.append(asyncio.create_task(rig.ask(body, headers={"x-request-id": f"r{number}"})))
            assert await rig.shows(RUNNING, 1) and await rig.shows(WAITING, number)
        await asyncio.gather(*tasks)
        records = await rig.truth()
    by_slot = sorted(records, key=lambda record: record["scheduled_ns"])
    assert [record["request_id"] for record in by_slot] == ["r0", "r1", "r2", "r3"]


async def test_error_event_is_followed_by_done() -> None:
    """A stream that breaks: status 200, an error event with code 500, then [DONE]."""
    async with declared(tokens=10) as rig:
        response = await rig.ask(HELLO | {"model": "qwen-error-event", "stream": True})
        plain = await rig.ask(HELLO | {"model": "qwen-error-event"})
    *_, error, done = events(response.content)
    assert response.status_code == 200
    assert (error["error"]["code"], done) == (500, "[DONE]")
    assert plain.status_code == 500


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_truncated_answer_ends_without_done_and_without_a_word(is_streamed: bool) -> None:
    """The connection is cut: the client's library sees an incomplete body, streamed or whole."""
    async with declared(tokens=10) as rig:
        with pytest.raises(httpx.RemoteProtocolError):
            await rig.ask(HELLO | {"model": "qwen-truncate", "stream": is_streamed})
        (record,) = await rig.truth()
    assert record["outcome"] == "broken"


async def test_named_status_is_answered_and_the_next_request_is_served() -> None:
    """qwen-fail-429 is a 429 with an error body; a name of no kind is a 404."""
    async with declared() as rig:
        failed = await rig.ask(HELLO | {"model": "qwen-fail-429"})
        unknown = await rig.ask(HELLO | {"model": "qwen-fail-299"})
        served = await rig.ask(HELLO)
    assert (failed.status_code, failed.json()["error"]["code"]) == (429, 429)
    assert unknown.status_code == 404
    assert served.status_code == 200


async def test_failure_rate_is_kept_and_seeded() -> None:
    """With rate 0.3, about 30 % of 60 requests fail, and the same ones with the same seed."""
    runs = []
    for _ in range(2):
        async with declared(tokens=1, fail_rate=0.3, fail_as="503", seed=7) as rig:
            runs.append([(await rig.ask(HELLO)).status_code for _ in range(60)])
    assert runs[0] == runs[1]
    assert 8 <= runs[0].count(503) <= 28


async def test_connection_is_cut_after_a_500_when_asked_for() -> None:
    """close_after_500: the answer arrives whole and says nothing of closing, and the socket is closed behind it."""
    async with declared(EngineSettings(close_after_500=True)) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        body = json.dumps(HELLO | {"model": "qwen-fail-500"}).encode()
        head = (
            f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 500") and b"connection: close" not in answer.lower()
    assert answer.rstrip().endswith(b"}")


async def test_stopping_server_tells_running_streams() -> None:
    """SIGTERM's work: a running stream gets vLLM's error event and [DONE]."""
    streamed = HELLO | {"stream": True}
    async with (
        declared(latencies=SLOW, tokens=5000) as rig,
        rig.client.stream("POST", CHAT, json=streamed) as response,
    ):
        chunks = response.aiter_bytes()
        got = await anext(chunks)
        rig.server.should_exit = True
        async for chunk in chunks:
            got += chunk
    *_, error, done = events(got)
    assert error["error"]["message"].startswith("EngineCore encountered an issue.")
    assert done == "[DONE]"

"""/chat against a loopback upstream: bytes, headers, statuses, streams and their failures."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.gateway_rig import BODY, gateway, items, until
from tests.integration.stub_upstream import (
    CHAT_ANSWER,
    LAST_CHUNK,
    StubRequest,
    answers,
    chunk,
    reset,
    response,
    stream_head,
    streams,
    stub_upstream,
)

WIRE_CASES = json.loads((Path(__file__).parents[1] / "golden" / "wire_cases.json").read_bytes())["cases"]
EVENTS = [f'data: {{"choices":[{{"index":0,"delta":{{"content":"{n}"}}}}]}}\n\n'.encode() for n in range(3)]
DONE = b"data: [DONE]\n\n"


def wire_case(name: str) -> list[bytes]:
    """The network chunks of a kept wire case."""
    return next([base64.b64decode(c) for c in case["chunks"]] for case in WIRE_CASES if case["id"] == name)


DATA_URIS = [
    "data:video/mp4;codecs=avc1;base64,AAAA",
    "data:video/mp4;BASE64,AAAA",
    "data:;base64,AAAA",
    "data:video/mp4,%00%01",
    "data:video/mp4;base64",
    "DATA:video/mp4;base64,AAAA",
    "data:video/mp4;base64," + "QUJD\r\n".join(["A" * 76] * 3),
    "data:video/mp4;base64,-_-_",
    "data:video/mp4;base64,AA!!!!AA",
    "data:video/mp4;base64,AAA",
]


@pytest.mark.parametrize("uri", DATA_URIS)
async def test_every_form_of_data_uri_goes_on_byte_for_byte(uri: str) -> None:
    """The gateway judges no URI: odd forms, odd spacing and key order reach vLLM as they were written."""
    body = b'{ "model":"qwen",\n\t"x": 1e2, "messages":[{"role":"user","content":[' + (
        json.dumps({"type": "video_url", "video_url": {"url": uri}}).encode() + b"]}] }\n"
    )
    async with stub_upstream() as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    assert stub.requests[0].body == body
    assert stub.requests[0].path == "/v1/chat/completions"
    assert stub.requests[0].headers["content-type"] == "application/json"


async def test_a_body_that_is_no_json_goes_on_too() -> None:
    """The body of /chat is not parsed: what is wrong with it is vLLM's to say."""
    refusal = {"error": {"message": "json_invalid", "type": "Bad Request", "param": "body.1", "code": 400}}
    async with stub_upstream(answers(refusal, status=400)) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", content=b"\xff\x00{")
        assert (answer.status_code, answer.json()) == (400, refusal)
    assert stub.requests[0].body == b"\xff\x00{"


@pytest.mark.parametrize(("size_bytes"), [1, 65_536, 1_048_576, 1_048_577, 5_000_000])
async def test_bodies_of_any_size_arrive_whole(size_bytes: int) -> None:
    """Small bodies go out at once, large ones in slices; both are the caller's bytes."""
    body = bytes(range(256)) * (size_bytes // 256) + b"x" * (size_bytes % 256)
    async with stub_upstream() as stub, gateway(stub) as rig:
        assert (await rig.client.post("/chat", content=body)).status_code == 200
        assert stub.requests[0].body == body
        assert stub.requests[0].headers["content-length"] == str(size_bytes)


async def test_a_chunked_request_arrives_whole() -> None:
    """A body without a length is read to its end and sent on with one."""

    async def pieces() -> Any:
        for _ in range(20):
            yield b"0123456789" * 1000

    async with stub_upstream() as stub, gateway(stub) as rig:
        assert (await rig.client.post("/chat", content=pieces())).status_code == 200
    assert stub.requests[0].body == b"0123456789" * 20_000


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [
        (
            200,
            "application/json",
            b'{"choices": [ {"message":{"content":"\xea\xb0\x80"}, "logprobs": -Infinity} ] }\r\n',
        ),
        (404, "application/json; charset=utf-8", b'{"error": {"message": "The model `nope` does not exist."}}'),
        (401, "application/json", b'{"error": "Unauthorized"}'),
        (503, "text/plain", b"busy"),
        (500, "text/html", b"<h1>Internal Server Error</h1>"),
        (200, "application/json", b""),
        (200, "text/event-stream; charset=utf-8", b"data: [DONE]\n\n"),
    ],
)
async def test_the_answer_comes_back_as_it_is(status: int, content_type: str, body: bytes) -> None:
    """Status, content type and bytes are vLLM's: NaN, plain text, an unasked event stream and an empty body too."""
    behaviour = answers(body, status=status, content_type=content_type)
    async with stub_upstream(behaviour) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", json=BODY)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (status, content_type, body)


@pytest.mark.parametrize("case", ["error_first", "error_mid", "empty_200", "one_byte", "nan_logprob", "crlf"])
async def test_a_stream_comes_back_as_it_is(case: str) -> None:
    """The gateway passes events on without reading them, errors among them."""
    chunks = wire_case(case)
    async with stub_upstream(streams(chunks)) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", json={**BODY, "stream": True})
    assert answer.content == b"".join(chunks)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"


async def test_a_compressed_answer_stays_compressed() -> None:
    """Nothing is unpacked on the way: the encoding is named to the caller, and nobody asked vLLM for it."""

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"\x1f\x8b not really", extra=["Content-Encoding: gzip"]))

    async with (
        stub_upstream(behave) as stub,
        gateway(stub) as rig,
        rig.client.stream("POST", "/chat", json=BODY) as got,
    ):
        assert b"".join([part async for part in got.aiter_raw()]) == b"\x1f\x8b not really"
        assert got.headers["content-encoding"] == "gzip"
    assert stub.requests[0].headers["accept-encoding"] == "identity"


async def test_events_come_as_vllm_sends_them() -> None:
    """The first event is with the caller while vLLM still holds the last one back."""
    release = asyncio.Event()

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head() + chunk(EVENTS[0]))
        await writer.drain()
        await release.wait()
        writer.write(chunk(EVENTS[1] + DONE) + LAST_CHUNK)

    async with stub_upstream(behave) as stub, gateway(stub, vllm_concurrency=1) as rig:
        async with rig.client.stream("POST", "/chat", json={**BODY, "stream": True}) as answer:
            parts = answer.aiter_raw()
            assert await asyncio.wait_for(anext(parts), 10) == EVENTS[0]
            assert rig.admission.in_use == 1, "the permit is held to the last byte"
            assert answer.headers["x-accel-buffering"] == "no"
            assert answer.headers["cache-control"] == "no-cache"
            release.set()
            assert b"".join([part async for part in parts]) == EVENTS[1] + DONE
        await until(lambda: rig.admission.in_use == 0)


async def test_server_timing_tells_queue_from_upstream() -> None:
    """With one permit, the second of two calls of 0.3 s waits about 0.3 s; upstream time leaves the wait out."""
    async with stub_upstream(answers(delay_seconds=0.3)) as stub, gateway(stub, vllm_concurrency=1) as rig:
        both = await asyncio.gather(*(rig.client.post("/chat", json=BODY) for _ in range(2)))
    times = [
        {
            part.split(";dur=")[0].strip(): float(part.split(";dur=")[1])
            for part in answer.headers["server-timing"].split(",")
        }
        for answer in both
    ]
    first, second = sorted(times, key=lambda each: each["queue"])
    assert first["queue"] < 250 <= second["queue"]
    assert all(each["upstream"] >= 290 for each in times)
    assert second["upstream"] < second["queue"] + 290


async def test_slow_first_byte_is_no_failure() -> None:
    """A prefill of six seconds is longer than the read timeout that client libraries come with, and is waited for."""
    async with stub_upstream(answers(delay_seconds=6)) as stub, gateway(stub) as rig:
        answer, lines = await asyncio.gather(rig.client.post("/chat", json=BODY), rig.batch(items(1)))
    assert answer.status_code == 200
    assert lines[0]["status"] == 200
    assert 5_900 <= lines[0]["elapsed_ms"] <= 12_000


async def test_nobody_there_is_502() -> None:
    """A port that refuses: 502 in the error shape, with the address and the remedy."""
    async with stub_upstream() as gone:
        base_url = gone.base_url
    async with gateway(base_url) as rig:
        answer = await rig.client.post("/chat", json=BODY)
        assert answer.status_code == 502
        error = answer.json()["error"]
        assert error["type"] == "connect_failed"
        assert error["code"] == 502
        assert base_url in error["message"]
        assert set(error) == {"message", "type", "param", "code"}
        assert rig.admission.in_use == 0


async def _never(_request: StubRequest, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def _headers_then_nothing(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n")
    await asyncio.sleep(3600)


async def _half_a_body(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"choices":')
    await asyncio.sleep(3600)


@pytest.mark.parametrize(
    "behaviour", [_never, _headers_then_nothing, _half_a_body, streams([], then="silent")], ids=lambda b: b.__name__
)
async def test_a_silent_vllm_is_504(behaviour: Any) -> None:
    """Silence before the headers, after them or in a plain body ends in one JSON 504, and the permit is back."""
    async with stub_upstream(behaviour) as stub, gateway(stub, vllm_timeout_seconds=1) as rig:
        began = time.monotonic()
        answer = await rig.client.post("/chat", json=BODY)
        assert 0.9 <= time.monotonic() - began <= 5
        assert (answer.status_code, answer.json()["error"]["type"]) == (504, "upstream_timeout")
        assert rig.admission.in_use == 0
        await until(lambda: stub.open_connections == 0)


async def test_the_timeout_covers_a_dripping_answer() -> None:
    """An answer that never falls silent and never ends still gives its permit back in time."""
    dripping = streams([b": ping\n\n"] * 1000, gap_seconds=0.05)
    async with stub_upstream(dripping) as stub, gateway(stub, vllm_timeout_seconds=1) as rig:
        with pytest.raises(httpx.RemoteProtocolError):
            await rig.client.post("/chat", json={**BODY, "stream": True})
        await until(lambda: rig.admission.in_use == 0 and stub.open_connections == 0)


async def _reset_at_once(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    reset(writer)


async def _reset_in_body(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"choices":')
    await asyncio.sleep(0.05)
    reset(writer)


async def _no_http(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await asyncio.sleep(0.05)
    reset(writer)


@pytest.mark.parametrize("behaviour", [_reset_at_once, _reset_in_body, _no_http])
async def test_a_broken_plain_answer_is_502(behaviour: Any) -> None:
    """A reset before or inside a plain answer, or something that is not HTTP, is one JSON 502."""
    async with stub_upstream(behaviour) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", json=BODY)
        assert (answer.status_code, answer.json()["error"]["type"]) == (502, "truncated")
        assert rig.admission.in_use == 0


@pytest.mark.parametrize("then", ["reset", "silent"])
@pytest.mark.parametrize("cut", [b"", b'data: {"choices":[{"ind'])
async def test_a_stream_that_fails_never_ends_cleanly(then: str, cut: bytes) -> None:
    """Two events, then a reset or silence: the caller gets an error event and a broken transfer, and no [DONE]."""
    behaviour = streams([*EVENTS[:2], *([cut] if cut else [])], then=then, gap_seconds=0.02)
    seen = b""
    async with stub_upstream(behaviour) as stub, gateway(stub, vllm_timeout_seconds=1) as rig:
        with pytest.raises(httpx.RemoteProtocolError):
            async with rig.client.stream("POST", "/chat", json={**BODY, "stream": True}) as answer:
                assert answer.status_code == 200
                async for part in answer.aiter_raw():
                    seen += part
        assert rig.admission.in_use == 0
    assert seen.startswith(b"".join(EVENTS[:2]))
    assert b"[DONE]" not in seen
    last = seen.rstrip(b"\n").rpartition(b"\n\n")[2]
    error = json.loads(last.removeprefix(b"data: "))["error"]
    assert error["type"] == ("truncated" if then == "reset" else "upstream_timeout")


async def test_a_full_gateway_answers_503_after_the_wait() -> None:
    """No permit in time: 503, Retry-After, and vLLM never heard of the request."""
    async with (
        stub_upstream(answers(delay_seconds=2)) as stub,
        gateway(stub, vllm_concurrency=1, vllm_acquire_timeout_seconds=0.3) as rig,
    ):
        first = asyncio.create_task(rig.client.post("/chat", json=BODY))
        await until(lambda: rig.admission.in_use == 1)
        refused = await rig.client.post("/chat", json=BODY)
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "acquire_timeout")
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.headers["server-timing"].startswith("queue;dur=")
        assert "upstream" not in refused.headers["server-timing"]
        assert (await first).status_code == 200
    assert len(stub.requests) == 1


async def test_a_connection_is_not_used_again_after_a_500() -> None:
    """vLLM closes the connection after a 500 without a word; the next call must not be written into it."""
    calls = 0

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        writer.write(response(b'{"error": {"message": "boom"}}', status=500 if calls % 2 else 200))

    async with stub_upstream(behave) as stub, gateway(stub, vllm_concurrency=1) as rig:
        seen = [(await rig.client.post("/chat", json=BODY)).status_code for _ in range(6)]
    assert seen == [500, 200] * 3
    assert stub.total_connections == 4, "the 200 left a connection that the 500 after it used up"


async def test_a_connection_that_went_stale_is_replaced_once() -> None:
    """A kept-alive connection that vLLM has just closed costs no request; a new one that breaks is a 502."""
    async with stub_upstream() as stub, gateway(stub, vllm_concurrency=1) as rig:
        assert (await rig.client.post("/chat", json=BODY)).status_code == 200
        hits = 0

        async def stale(request: StubRequest, writer: asyncio.StreamWriter) -> None:
            nonlocal hits
            hits += 1
            await (_reset_at_once if hits == 1 else answers())(request, writer)

        stub.behaviour = stale
        assert (await rig.client.post("/chat", json=BODY)).status_code == 200
        assert hits == 2
        stub.behaviour = _reset_at_once
        count = len(stub.requests)
        assert (await rig.client.post("/chat", json=BODY)).status_code == 502
        assert len(stub.requests) == count + 1


async def test_keys_for_vllm() -> None:
    """VLLM_API_KEY goes up as a bearer token; without it the caller's own header does, but never a gateway key."""
    mine = {"Authorization": "Bearer mine"}
    async with stub_upstream() as stub:
        async with gateway(stub, vllm_api_key="theirs") as rig:
            await rig.client.post("/chat", json=BODY, headers=mine)
        async with gateway(stub) as rig:
            await rig.client.post("/chat", json=BODY, headers=mine)
            await rig.client.post("/chat/batch", json={"items": items(1)}, headers=mine)
        async with gateway(stub, gateway_api_keys="mine, other") as rig:
            await rig.client.post("/chat", json=BODY, headers=mine)
    assert [request.headers.get("authorization") for request in stub.requests] == [
        "Bearer theirs",
        "Bearer mine",
        "Bearer mine",
        None,
    ]


async def test_a_large_plain_answer_is_passed_on_in_time() -> None:
    """Beyond what is held back, a plain answer streams through and still arrives whole."""
    big = b'{"x": "' + b"y" * (20 * 1024 * 1024) + b'"}'
    async with stub_upstream(answers(big)) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", json=BODY)
    assert answer.content == big


async def test_the_error_shape_is_the_same_everywhere() -> None:
    """404 and 405 of the gateway's own router speak like vLLM's errors, and name the request."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        for method, path, status in [("GET", "/nope", 404), ("GET", "/chat", 405), ("PUT", "/chat/batch", 405)]:
            answer = await rig.client.request(method, path)
            assert answer.status_code == status
            assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
            assert answer.headers["x-request-id"]
    assert CHAT_ANSWER["id"] not in answer.text


@pytest.mark.parametrize("status", [101, 204, 205, 304, 600, 999])
@pytest.mark.parametrize("body", [b"", b'{"a":1}'])
async def test_a_status_that_no_chat_answer_has_is_a_502(status: int, body: bytes) -> None:
    """Outside HTTP's range, or one that has no body: the caller gets a whole error all the same, a batch its line."""
    async with stub_upstream(answers(body, status=status)) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", json=BODY)
        lines = await rig.batch(items(1))
        assert rig.admission.in_use == 0
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, 502)
    assert answer.json()["error"]["type"] in ("upstream_error", "truncated")
    assert (lines[0]["status"], "error" in lines[0]) == (500, True)


@pytest.mark.parametrize("name", ["Content-Type", "Content-Encoding", "Retry-After"])
@pytest.mark.parametrize("value", [b"a\xff", "한".encode()])
async def test_a_header_that_nobody_could_write_is_left_out(name: str, value: bytes) -> None:
    """Such a header of vLLM's costs the caller that header, and not the answer."""

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + name.encode() + b": " + value + b"\r\n\r\n{}")
        await writer.drain()

    async with stub_upstream(behave) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", json=BODY)
    assert (answer.status_code, answer.content, name in answer.headers) == (200, b"{}", False)


@pytest.mark.parametrize("value", [b"a\x01b", b"a\x7fb", b"a\x00b"])
async def test_a_header_with_a_control_character_never_reaches_the_caller(value: bytes) -> None:
    """It is no HTTP: refused whole as a 502, or left out; never passed on, never a dropped connection."""

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRetry-After: " + value + b"\r\n\r\n{}")
        await writer.drain()

    async with stub_upstream(behave) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", json=BODY)
        assert rig.admission.in_use == 0
    assert answer.status_code in (200, 502)
    assert "retry-after" not in answer.headers
    assert answer.content == b"{}" or answer.json()["error"]["code"] == 502

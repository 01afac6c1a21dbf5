"""client.gateway over a function in place of a network."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from vision_bench.client.gateway import BatchLine, GatewayClient
from vision_bench.client.retry import RetryBudget
from vision_bench.errors import BrokenStream, ConnectFailed, HttpFailure, InvalidRequest, UpstreamTimeout

BODY = {"model": "qwen", "messages": [{"role": "user", "content": "hi"}]}
GOOD = {"id": "c", "model": "qwen", "choices": [{"message": {"content": "안녕"}, "finish_reason": "stop"}], "usage": {}}
Handler = Callable[[httpx.Request], httpx.Response]


class Net:
    """Answers requests in turn from ``answers``; the last one repeats. Keeps what was sent and waited."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def client(self, **settings: Any) -> GatewayClient:
        settings = {"draw": random.Random(7), "sleep": self.sleep, "transport": httpx.MockTransport(self)} | settings
        return GatewayClient("http://gateway", **settings)


def answer(body: object = GOOD, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, json=body, headers=headers)


def events(*data: str) -> httpx.Response:
    content = "".join(f"data: {item}\n\n" for item in data).encode()
    return httpx.Response(200, content=content, headers={"content-type": "text/event-stream"})


def lines(*records: dict[str, Any], tail: bytes = b"") -> httpx.Response:
    content = b"".join(json.dumps(record).encode() + b"\n" for record in records) + tail
    return httpx.Response(200, content=content, headers={"content-type": "application/x-ndjson"})


async def test_chat_posts_the_body_and_reads_the_reply() -> None:
    """The body goes out as it is, with an id; the answer comes back with the gateway's id."""
    net = Net(answer(**{"x-request-id": "abc"}))
    async with net.client() as client:
        found = await client.chat(BODY, request_id="abc")
    (request,) = net.requests
    assert (request.url.path, json.loads(request.content)) == ("/chat", BODY)
    assert request.headers["x-request-id"] == "abc"
    assert (found.reply.text, found.request_id) == ("안녕", "abc")
    assert found.elapsed_ms >= 0


@pytest.mark.parametrize("status", [502, 503])
async def test_502_and_503_are_tried_again(status: int) -> None:
    """A gateway that comes back in time is no failure."""
    net = Net(answer({"error": {"message": "x"}}, status), answer())
    async with net.client() as client:
        assert (await client.chat(BODY)).reply.text == "안녕"
    assert len(net.requests) == 2 and len(net.waits) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 429, 500, 504])
async def test_no_other_status_is_tried_again(status: int) -> None:
    """Asking again would repeat a caller's mistake, or cost a model's time twice."""
    net = Net(answer({"error": {"message": "no luck"}}, status))
    async with net.client() as client:
        with pytest.raises(HttpFailure, match="no luck") as caught:
            await client.chat(BODY)
    assert caught.value.status == status and len(net.requests) == 1


async def test_retries_end_and_the_last_failure_is_raised() -> None:
    """Three tries in all."""
    net = Net(answer({"error": "busy"}, 503))
    async with net.client() as client:
        with pytest.raises(HttpFailure, match="busy"):
            await client.chat(BODY)
    assert len(net.requests) == 3


async def test_retry_after_is_waited_for() -> None:
    """The server's own word wins over the backoff."""
    net = Net(answer({}, 503, **{"retry-after": "4"}), answer())
    async with net.client() as client:
        await client.chat(BODY)
    assert 4.0 <= net.waits[0] <= 4.25


async def test_connect_errors_are_tried_again_and_keep_the_request_id() -> None:
    """One call is one id in every log, however often it was tried."""
    net = Net(httpx.ConnectError("refused"), answer())
    async with net.client() as client:
        await client.chat(BODY)
    assert len({request.headers["x-request-id"] for request in net.requests}) == 1
    net = Net(httpx.ConnectError("refused"))
    async with net.client() as client:
        with pytest.raises(ConnectFailed, match=r"http://gateway.*is it running"):
            await client.chat(BODY)
    assert len(net.requests) == 3


@pytest.mark.parametrize(
    "failure", [httpx.ReadTimeout("t"), httpx.ReadError("reset"), httpx.RemoteProtocolError("half")]
)
async def test_nothing_is_tried_again_once_it_may_have_arrived(failure: httpx.HTTPError) -> None:
    """A request that the model may be working on is never sent twice."""
    net = Net(failure)
    expected = UpstreamTimeout if isinstance(failure, httpx.ReadTimeout) else BrokenStream
    async with net.client() as client:
        with pytest.raises(expected):
            await client.chat(BODY)
    assert len(net.requests) == 1


async def test_budget_is_shared_by_all_calls() -> None:
    """A hundred calls into a dead gateway cost at most ten more."""
    net = Net(answer({"error": "down"}, 502))
    async with net.client(budget=RetryBudget()) as client:
        await asyncio.gather(*(client.chat(BODY) for _ in range(100)), return_exceptions=True)
    assert 100 <= len(net.requests) <= 110


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (httpx.Response(200, content=b""), "empty HTTP 200"),
        (httpx.Response(200, content=b"<html>"), "not JSON"),
        (answer([1]), "list"),
        (answer({"error": {"message": "EngineCore encountered an issue", "code": None}}), "EngineCore encountered"),
        (answer({"choices": []}), "no choices"),
        (events('{"choices": []}', "[DONE]"), "event stream"),
    ],
)
async def test_a_200_without_an_answer_is_an_error(response: httpx.Response, says: str) -> None:
    """Empty, a proxy's page, an error object, no choice, a stream nobody asked for: none is an empty answer."""
    async with Net(response).client() as client:
        with pytest.raises(BrokenStream, match=says):
            await client.chat(BODY)


async def read(client: GatewayClient) -> tuple[list[str], Any]:
    async with client.stream_chat(BODY) as stream:
        pieces = [delta.text async for delta in stream]
    return pieces, stream.reply


async def test_streamed_chat_gives_pieces_then_the_reply() -> None:
    """The body asks for the usage chunk; pieces add up to the text."""
    net = Net(
        events(
            '{"choices": [{"delta": {"content": "안"}}]}',
            '{"choices": [{"delta": {"content": "녕"}, "finish_reason": "stop"}]}',
            '{"choices": [], "usage": {"completion_tokens": 2}}',
            "[DONE]",
        )
    )
    async with net.client() as client:
        pieces, reply = await read(client)
    assert pieces == ["안", "녕"] and reply.text == "안녕" and reply.usage == {"completion_tokens": 2}
    sent = json.loads(net.requests[0].content)
    assert sent["stream"] is True and sent["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (events('{"error": {"message": "boom", "code": null}}', "[DONE]"), "boom"),
        (events('{"choices": [{"delta": {"content": "a"}}]}', '{"error": {"message": "mid"}}', "[DONE]"), "mid"),
        (events('{"choices": [{"delta": {"content": "a"}}]}'), "ended after 1 characters"),
        (httpx.Response(200, headers={"content-type": "text/event-stream"}), "ended after 0 characters"),
        (answer(), "asked for a stream, got application/json"),
    ],
)
async def test_a_stream_that_fails_or_ends_early_raises(response: httpx.Response, says: str) -> None:
    """[DONE] after an error, a clean early close, an empty 200, a whole answer: each is named."""
    async with Net(response).client() as client:
        with pytest.raises(BrokenStream, match=says):
            await read(client)


async def test_error_status_of_a_stream_is_an_http_failure() -> None:
    """vLLM answers bad media with 400 JSON in stream mode too."""
    async with Net(answer({"error": {"message": "Could not open video stream"}}, 400)).client() as client:
        with pytest.raises(HttpFailure, match="Could not open"):
            await read(client)


async def test_batch_gives_lines_in_the_order_of_arrival() -> None:
    """Bodies for good ones, errors as strings for others; nothing is sorted."""
    net = Net(
        lines(
            {"id": "b", "status": 200, "elapsed_ms": 5, "body": GOOD},
            {"id": "a", "status": 400, "elapsed_ms": 3, "error": {"message": "bad"}},
        )
    )
    async with net.client() as client:
        found = [line async for line in client.batch([("a", BODY), ("b", BODY)])]
    assert found == [BatchLine("b", 200, 5, GOOD, None), BatchLine("a", 400, 3, None, "bad")]
    assert json.loads(net.requests[0].content) == {"items": [{"id": "a", "body": BODY}, {"id": "b", "body": BODY}]}


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (lines({"id": "a", "status": 200, "elapsed_ms": 1, "body": GOOD}), "after 1 of 2"),
        (lines({"id": "a", "status": 200, "elapsed_ms": 1, "body": GOOD}, tail=b'{"id": "b", "sta'), "cannot be read"),
        (lines({"status": 200}), "cannot be read"),
        (answer(), "asked for a batch, got application/json"),
    ],
)
async def test_a_batch_that_loses_lines_says_so(response: httpx.Response, says: str) -> None:
    """Lines that came are given; what is missing is an error, not silence."""
    async with Net(response).client() as client:
        with pytest.raises(BrokenStream, match=says):
            async for _ in client.batch([("a", BODY), ("b", BODY)]):
                pass


@pytest.mark.parametrize(
    "odd",
    [
        b"[" * 5000,
        b"[1]",
        b'{"id": ["a"], "status": 200}',
        b'{"id": "a", "status": 1e999}',
        b'{"id": "a", "status": 200, "elapsed_ms": "fast"}',
    ],
)
async def test_a_line_that_cannot_be_read_costs_no_other_line(odd: bytes) -> None:
    """The batch's failure is raised when the rest has been given."""
    good = json.dumps({"id": "b", "status": 200, "elapsed_ms": 1, "body": GOOD}).encode()
    found: set[str] = set()
    async with Net(lines(tail=odd + b"\n" + good)).client() as client:
        with pytest.raises(BrokenStream, match="cannot be read"):
            async for line in client.batch([("a", BODY), ("b", BODY)]):
                found.add(line.id)
    assert found == {"b"}


async def test_leaving_a_batch_early_closes_the_connection() -> None:
    """That is what makes the gateway cancel the rest."""
    closed: list[bool] = []

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b'{"id": "a", "status": 200, "elapsed_ms": 1, "body": {}}\n'

        async def aclose(self) -> None:
            closed.append(True)

    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=Endless(), headers={"content-type": "application/x-ndjson"})

    async with GatewayClient("http://gateway", transport=httpx.MockTransport(handler)) as client:
        async with contextlib.aclosing(client.batch([("a", BODY)])) as found:
            async for _ in found:
                break
        assert closed == [True]


async def test_what_cannot_be_sent_is_refused_before_it_is() -> None:
    """NaN, a stream flag in a plain chat, an address without a scheme."""
    net = Net(answer())
    async with net.client() as client:
        with pytest.raises(InvalidRequest, match="JSON"):
            await client.chat({"temperature": float("nan")})
        with pytest.raises(InvalidRequest, match="stream_chat"):
            await client.chat(BODY | {"stream": True})
    assert net.requests == []
    with pytest.raises(InvalidRequest, match="no address"):
        GatewayClient("localhost:8001")


async def test_health_check_is_one_try() -> None:
    """Whoever asks wants to know now."""
    net = Net(httpx.ConnectError("refused"))
    async with net.client() as client:
        with pytest.raises(ConnectFailed):
            await client.check()
    assert len(net.requests) == 1
    async with Net(answer({"detail": "Not Found"}, 404)).client() as client:
        with pytest.raises(HttpFailure, match="Not Found"):
            await client.check()


async def test_key_is_sent_as_bearer() -> None:
    """And only when there is one."""
    net = Net(answer())
    async with net.client(api_key="k") as client:
        await client.chat(BODY)
    async with net.client() as client:
        await client.chat(BODY)
    assert [request.headers.get("authorization") for request in net.requests] == ["Bearer k", None]

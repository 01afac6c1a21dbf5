"""client.live over a function in place of a network, on a clock that jumps."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests import jumping_clock

from vision_bench.answers.analysis import Question
from vision_bench.client.live import LiveClient
from vision_bench.client.live_question import LiveQuestion, Trailing
from vision_bench.client.live_rules import Unavailable, code_of
from vision_bench.client.retry import RetryBudget
from vision_bench.errors import BrokenStream, ConnectFailed, HttpFailure, UpstreamError
from vision_bench.wire.chat import Json

STREAM = {"id": "s1", "ttl_seconds": 300, "publish": {"type": "push", "url": "http://gateway/x", "token": "t0"}}
RECEIPT = {
    "frames": [],
    "stamps": {name: {"clock": "server", "ns": ns} for name, ns in (("asked", 5), ("first_token", 7))},
}
Reply = tuple[int, Any] | tuple[int, Any, dict[str, str]] | Exception


def failure(status: int, code: str, **headers: str) -> Reply:
    return status, {"detail": {"error": {"message": f"no: {code}", "type": "x_error", "code": code}}}, headers


def events(*told: Json | str) -> bytes:
    return "".join(f"data: {item if isinstance(item, str) else json.dumps(item)}\n\n" for item in told).encode()


def text(content: str, finish: str | None = None, **more: Any) -> Json:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}], **more}


ANSWER = events(text("a "), text("dog", "stop"), {"choices": [], "usage": {}, "vision_bench": RECEIPT}, "[DONE]")


class Net:
    """A gateway as a table: the replies to each method and path, in turn; the last one repeats."""

    def __init__(self, **replies: Any) -> None:
        self.replies: dict[str, list[Any]] = {name: list(given) for name, given in replies.items()}
        self.calls: list[tuple[float, str, Any]] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        name = next(
            name
            for name, ending in {
                "models": "/models",
                "keepalive": "/keepalive",
                "ask": "/chat/completions",
                "delete": "/s1",
                "create": "/streams",
            }.items()
            if path.endswith(ending)
        )
        body = json.loads(request.content) if request.content else None
        self.calls.append((asyncio.get_running_loop().time(), name, body))
        given = self.replies[name]
        reply = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, httpx.AsyncByteStream):
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=reply)
        if isinstance(reply, bytes):
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=reply)
        status, told, *headers = reply
        return httpx.Response(status, json=told, headers=headers[0] if headers else None)

    def client(self, **settings: Any) -> LiveClient:
        loop = asyncio.get_running_loop()
        settings = {
            "transport": httpx.MockTransport(self),
            "draw": random.Random(7),
            "clock": lambda: round(loop.time() * 1e9),
            "budget": RetryBudget(reserve=100),
        } | settings
        return LiveClient("http://gateway", **settings)

    def times(self, name: str) -> list[float]:
        return [at for at, called, _ in self.calls if called == name]

    def bodies(self, name: str) -> list[Any]:
        return [body for _, called, body in self.calls if called == name]


def test_an_answer_is_read_judged_and_accounted_for() -> None:
    """Text, verdict, and a receipt that holds the server's readings and ours; two calls share no clock name."""

    async def main() -> None:
        net = Net(ask=[ANSWER])
        async with net.client() as client:
            answer = await client.ask("s1", LiveQuestion("what now?", Trailing(5, max_fps=2), thread_id="t"))
        assert answer.reply.text == "a dog"
        assert (answer.verdict.outcome, answer.verdict.result) == ("ok", {"text": "a dog"})
        assert answer.receipt is not None
        assert set(answer.receipt.stamps) == {"asked", "first_token", "decided", "read", "parsed", "validated"}
        assert {"client", "server"} == {stamp.clock.partition("-")[0] for stamp in answer.receipt.stamps.values()}
        (body,) = net.bodies("ask")
        assert (body["stream"], body["thread_id"]) == (True, "t")
        frames, prompt = body["messages"][0]["content"]
        assert frames["video_url"]["url"] == "stream://streams/s1?start_offset_ms=-5000&max_fps=2"
        assert prompt["text"] == "what now?"

    jumping_clock.run(main())


def test_an_answer_is_held_against_its_schema() -> None:
    """The schema goes with the question; an answer that breaks it has a verdict, and no exception."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def main() -> None:
        net = Net(ask=[events(text('{"n": 3}', "stop"), "[DONE]"), ANSWER])
        async with net.client() as client:
            question = LiveQuestion(Question("how many?", schema, "count"))
            good, bad = [await client.ask("s1", question) for _ in range(2)]
        assert good.verdict.result == {"n": 3}
        assert good.receipt is None
        assert bad.verdict.outcome == "invalid_json"
        assert net.bodies("ask")[0]["response_format"]["json_schema"]["schema"] == schema

    jumping_clock.run(main())


CALLS = [
    # (call, failures in turn, good reply, the longest wait before each retry)
    ("create", [(503, {})] * 3, (201, STREAM), [1, 2, 4]),
    ("create", [httpx.ConnectError("no")] * 3, (201, STREAM), [1, 2, 4]),
    ("keepalive", [(503, {}), httpx.ReadError("cut"), (503, {})], (200, {}), [1, 1, 1]),
    (
        "ask",
        [failure(503, "model_unavailable"), httpx.RemoteProtocolError("cut"), failure(502, "x")],
        ANSWER,
        [0.5, 1, 2],
    ),
]


@pytest.mark.parametrize(("name", "failures", "good", "waits"), CALLS)
def test_what_may_pass_is_tried_again(name: str, failures: list[Any], good: Any, waits: list[float]) -> None:
    """Three retries by the table, each wait drawn below its bound; a fourth failure is told."""

    async def call(client: LiveClient) -> object:
        if name == "ask":
            return await client.ask("s1", LiveQuestion("what?"))
        return await (client.create() if name == "create" else client.keep_alive("s1"))

    async def main() -> None:
        net = Net(**{name: [*failures, good]})
        async with net.client() as client:
            answer = await call(client)
        times = net.times(name)
        assert len(times) == 4
        for before, after, bound in zip(times[:-1], times[1:], waits, strict=True):
            assert 0 < after - before <= bound
        if name == "ask":
            assert answer.tries == 4  # type: ignore[attr-defined]
        worse = Net(**{name: [*failures, failures[0]]})
        async with worse.client() as client:
            with pytest.raises((HttpFailure, ConnectFailed)):
                await call(client)
        assert len(worse.calls) == 4

    jumping_clock.run(main())


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("create", (400, {})),
        ("create", (429, {"detail": "as many as allowed"})),
        ("create", httpx.ReadError("cut")),  # the stream may have been made
        ("keepalive", (404, {})),
        ("ask", failure(404, "stream_not_found")),
        ("ask", failure(410, "frame_evicted")),
        ("ask", failure(504, "upstream_timeout")),
        ("ask", httpx.ReadTimeout("slow")),
    ],
)
def test_what_will_not_pass_is_told_at_once(name: str, reply: Any) -> None:
    """One call, no wait."""

    async def main() -> None:
        net = Net(**{name: [reply]})
        async with net.client() as client:
            with pytest.raises(UpstreamError) as told:
                await {"create": client.create, "keepalive": lambda: client.keep_alive("s1")}.get(
                    name, lambda: client.ask("s1", LiveQuestion("what?"))
                )()
        assert len(net.calls) == 1
        if name == "ask" and isinstance(told.value, HttpFailure):
            assert code_of(told.value) == reply[1]["detail"]["error"]["code"]

    jumping_clock.run(main())


def test_retry_after_is_waited_for() -> None:
    """A 429 that says when is asked again after that, with jitter on top."""

    async def main() -> None:
        net = Net(ask=[failure(429, "rate_limited", **{"Retry-After": "7"}), ANSWER])
        async with net.client() as client:
            await client.ask("s1", LiveQuestion("what?"))
        first, second = net.times("ask")
        assert 7 <= second - first <= 7.5

    jumping_clock.run(main())


def test_all_calls_share_one_budget_of_retries() -> None:
    """A client whose budget is spent retries nothing, whatever the table says."""

    async def main() -> None:
        net = Net(ask=[failure(503, "model_unavailable")], keepalive=[(503, {})])
        async with net.client(budget=RetryBudget(reserve=2, ratio=0)) as client:
            for call in (client.ask("s1", LiveQuestion("what?")), client.keep_alive("s1")):
                with pytest.raises(HttpFailure):
                    await call
        assert (len(net.times("ask")), len(net.times("keepalive"))) == (3, 1)

    jumping_clock.run(main())


def models(**states: str) -> Reply:
    return 200, {"data": [{"id": name, "vision_bench": {"state": state}} for name, state in states.items()]}


def test_a_model_that_cannot_be_had_is_replaced_by_the_named_one() -> None:
    """After the retries the other model is asked, once it is seen to be ready; the answer says which one it is of."""

    async def main() -> None:
        net = Net(ask=[failure(404, "model_unavailable"), ANSWER], models=[models(small="ready")])
        async with net.client() as client:
            question = LiveQuestion("what?", model="large", unavailable=Unavailable("fallback", model="small"))
            answer = await client.ask("s1", question)
        assert [body["model"] for body in net.bodies("ask")] == ["large", "small"]
        assert (answer.model, answer.tries) == ("small", 2)

    jumping_clock.run(main())


def test_a_fallback_that_is_not_ready_is_not_asked() -> None:
    """The failure of the preferred model is told."""

    async def main() -> None:
        net = Net(ask=[failure(404, "model_unavailable")], models=[models(small="unavailable")])
        async with net.client() as client:
            question = LiveQuestion("what?", model="large", unavailable=Unavailable("fallback", model="small"))
            with pytest.raises(HttpFailure, match="model_unavailable"):
                await client.ask("s1", question)
        assert len(net.times("ask")) == 1

    jumping_clock.run(main())


def test_a_model_is_waited_for() -> None:
    """Until it is listed as ready, and no longer than allowed."""

    async def main() -> None:
        unready, ready = models(large="unavailable"), models(large="ready")
        net = Net(ask=[failure(404, "model_unavailable"), ANSWER], models=[unready, unready, ready])
        async with net.client() as client:
            question = LiveQuestion("what?", model="large", unavailable=Unavailable("wait", wait_seconds=60))
            assert (await client.ask("s1", question)).model == "large"
        assert net.times("ask") == [0, 6]
        gone = Net(ask=[failure(404, "model_unavailable")], models=[unready])
        async with gone.client() as client:
            with pytest.raises(HttpFailure):
                await client.ask("s1", question)
        assert asyncio.get_running_loop().time() == pytest.approx(66)

    jumping_clock.run(main())


def test_another_failure_is_no_reason_to_ask_another_model() -> None:
    """A frame that is gone is gone for every model."""

    async def main() -> None:
        net = Net(ask=[failure(410, "frame_evicted")])
        async with net.client() as client:
            question = LiveQuestion("what?", unavailable=Unavailable("fallback", model="small"))
            with pytest.raises(HttpFailure):
                await client.ask("s1", question)
        assert [name for _, name, _ in net.calls] == ["ask"]

    jumping_clock.run(main())


def test_a_stream_is_kept_alive_every_third_of_its_lease() -> None:
    """Each keepalive may change the lease and brings a fresh token; the end deletes the stream."""

    async def main() -> None:
        renewed = {"ttl_seconds": 30, "publish": {"token": "t1"}}
        net = Net(create=[(201, STREAM)], keepalive=[(200, renewed)], delete=[(200, {"deleted": True})])
        async with net.client() as client:
            async with client.stream() as stream:
                assert stream.publish == STREAM["publish"]
                await asyncio.sleep(125)
                assert stream.publish == {"token": "t1"}
            await asyncio.sleep(100)
        assert net.times("keepalive") == [100, 110, 120]
        assert net.times("delete") == [125]

    jumping_clock.run(main())


def test_a_stream_that_is_gone_is_kept_alive_no_more() -> None:
    """A keepalive that fails for good says why; one that may pass is made again."""

    async def main() -> None:
        net = Net(
            create=[(201, {**STREAM, "ttl_seconds": 30})],
            keepalive=[(500, {}), (200, {"ttl_seconds": 30}), (404, {"detail": "ended"})],
            delete=[(404, {})],
        )
        async with net.client() as client, client.stream() as stream:
            await asyncio.sleep(25)
            assert stream.failure is None
            await asyncio.sleep(100)
            assert stream.failure is not None
            assert stream.failure.status == 404
        assert net.times("keepalive") == [10, 20, 30]

    jumping_clock.run(main())


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces, ``gap_seconds`` apart; then silence for ever, or an end."""

    def __init__(self, *pieces: bytes, gap_seconds: float = 0.0, then: str = "end") -> None:
        self._pieces, self._gap_seconds, self._then = pieces, gap_seconds, then
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await asyncio.sleep(self._gap_seconds)
            yield piece
        if self._then == "silence":
            await asyncio.sleep(1e9)
        elif self._then == "cut":
            raise httpx.ReadError("cut")

    async def aclose(self) -> None:
        self.is_closed = True


def test_reading_stops_at_done_and_stamps_the_answer() -> None:
    """An open socket after [DONE] is nobody's wait; TTFT ends with the first output, parsing with the receipt."""

    async def main() -> None:
        body = Pieces(
            events({"choices": [{"delta": {"role": "assistant"}}]}),
            events(text("a")),
            events(text("b", "stop", vision_bench=RECEIPT)),
            events("[DONE]"),
            gap_seconds=1.0,
            then="silence",
        )
        async with Net(ask=[body]).client() as client:
            answer = await client.ask("s1", LiveQuestion("what?"))
        assert body.is_closed
        assert (answer.ttft_ms, answer.elapsed_ms) == (2000, 4000)
        assert answer.receipt is not None
        clock = answer.receipt.stamps["decided"]
        assert (answer.receipt.stamps["read"].ns - clock.ns) == 3_000_000_000
        stages = {stage.stage: stage.ms for stage in answer.stages()}
        assert (stages["parse"], stages["validation"], stages["workflow"]) == (0, 1000, 4000)

    jumping_clock.run(main())


def test_leaving_an_answer_closes_its_call() -> None:
    """In the middle of the tokens; the answer that was not read to its end is not given."""

    async def main() -> None:
        body = Pieces(events(text("a")), events(text("b")), gap_seconds=1.0, then="silence")
        async with Net(ask=[body]).client() as client:
            async with client.asking("s1", LiveQuestion("what?")) as answer:
                async for piece in answer:
                    assert piece.text == "a"
                    break
                with pytest.raises(BrokenStream):
                    _ = answer.answer
            assert body.is_closed

    jumping_clock.run(main())


@pytest.mark.parametrize(
    "body",
    [
        Pieces(events(text("a")), then="cut"),
        Pieces(events(text("a"))),
        Pieces(events(text("a"), {"error": {"message": "out of memory"}}, "[DONE]")),
        (200, {"choices": []}),
    ],
)
def test_a_broken_answer_is_no_answer_and_is_not_asked_again(body: Any) -> None:
    """Cut, ended early, an error inside, and no stream at all: one call, one failure."""

    async def main() -> None:
        net = Net(ask=[body])
        async with net.client() as client:
            with pytest.raises(BrokenStream):
                await client.ask("s1", LiveQuestion("what?"))
        assert len(net.calls) == 1

    jumping_clock.run(main())


def test_a_stream_is_watched_until_its_end() -> None:
    """An answer each second; a segment that is empty and a busy server pass; the stream's end is raised."""

    async def main() -> None:
        net = Net(
            ask=[
                ANSWER,
                failure(404, "segment_empty"),
                failure(500, "internal_error"),
                failure(404, "stream_not_found"),
            ]
        )
        async with net.client() as client:
            seen = []
            with pytest.raises(HttpFailure, match="stream_not_found"):
                async for one in client.watch("s1", LiveQuestion("what?"), every_seconds=1):
                    seen.append(one)  # noqa: PERF401  # what came before the failure is kept
        told = [one.answer.reply.text if one.answer else str(one.failure) for one in seen]
        assert told == ["a dog", "HTTP 404: no: segment_empty", "HTTP 500: no: internal_error"]
        assert net.times("ask") == [0, 1, 2, 3]

    jumping_clock.run(main())


@pytest.mark.parametrize("created", [{}, {"id": 7, "ttl_seconds": 1}, {"id": "s", "ttl_seconds": "1"}])
def test_a_creation_that_means_nothing_is_told(created: Json) -> None:
    """Another server than a gateway is not taken for one."""

    async def main() -> None:
        async with Net(create=[(201, created)]).client() as client:
            with pytest.raises(BrokenStream, match="LIVE_ENABLED"):
                await client.create()

    jumping_clock.run(main())

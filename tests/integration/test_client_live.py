"""client.live against a running gateway: a film published over the WebSocket, asked about while it plays."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from tests.integration.gateway_rig import Rig, gateway, until
from tests.integration.live_rig import live_gateway, put, stream_of
from tests.integration.stub_upstream import Behaviour, StubUpstream, answers, streams, stub_upstream

from vision_bench.answers.analysis import Question
from vision_bench.client.live import LiveClient, LiveStream
from vision_bench.client.live_question import Absolute, Latest, LiveQuestion, Trailing
from vision_bench.client.live_rules import code_of
from vision_bench.errors import BrokenStream, HttpFailure

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def chunks(*texts: str) -> list[bytes]:
    """The events of an answer, as vLLM sends them with include_usage."""
    told: list[Any] = [{"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}]
    told += [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]} for text in texts]
    told += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    told += [{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}]
    return [f"data: {json.dumps(one)}\n\n".encode() for one in told] + [b"data: [DONE]\n\n"]


def film_of(path: Path, *, fps: int = 20, frames: int = 20) -> Path:
    with av.open(str(path), "w") as container:
        track: Any = container.add_stream("libx264", rate=fps)
        track.width, track.height, track.pix_fmt = 64, 48, "yuv420p"
        for index in range(frames):
            picture = np.full((48, 64, 3), 10 + 10 * index, np.uint8)
            container.mux(track.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(track.encode(None))
    return path


@contextlib.asynccontextmanager
async def published(client: LiveClient, film: Path) -> AsyncIterator[LiveStream]:
    """A stream into which ``film`` is shown again and again, once its first picture is there."""
    async with client.stream() as stream:
        there = asyncio.Event()
        showing = asyncio.create_task(
            client.publish(stream, film, rounds=None, on_picture=lambda so_far: so_far.stored and there.set())
        )
        try:
            arrived = asyncio.create_task(there.wait())
            await asyncio.wait((showing, arrived), timeout=30, return_when=asyncio.FIRST_COMPLETED)
            assert arrived.done(), showing
            yield stream
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)


@contextlib.asynccontextmanager
async def around(behaviour: Behaviour, **settings: Any) -> AsyncIterator[tuple[StubUpstream, Rig, LiveClient]]:
    """A model server that does as it is told, a gateway in front of it, a client."""
    async with (
        stub_upstream(behaviour) as upstream,
        live_gateway(upstream, **settings) as rig,
        LiveClient(f"{rig.url}/v1") as client,
    ):
        yield upstream, rig, client


def saying(*texts: str) -> Behaviour:
    """Answers each question with these tokens, 10 ms apart."""
    return streams(chunks(*texts), gap_seconds=0.01)


async def test_a_film_is_asked_about_while_it_plays(tmp_path: Path) -> None:
    """Three windows, each with frames of it alone; the receipt goes from the capture to the validated answer, every
    stage that both sides took has a time, and none is negative. The stream is gone at the end."""
    async with around(saying('{"n":', " 3}")) as (_, _, client):
        async with published(client, film_of(tmp_path / "film.mp4")) as stream:
            question = Question("how many?", SCHEMA, "count")
            latest = await client.ask(stream.id, LiveQuestion(question))
            trailing = await client.ask(stream.id, LiveQuestion(question, Trailing(0.5, max_fps=1000)))
            window = Absolute(0, 200, max_fps=1000)
            absolute = await client.ask(stream.id, LiveQuestion(question, window, thread_id="t"))
        for answer in (latest, trailing, absolute):
            assert answer.verdict.result == {"n": 3}
            assert answer.receipt is not None
            stages = {stage.stage: stage for stage in answer.stages()}
            known = {name for name, stage in stages.items() if stage.problem is None}
            assert known >= {
                *("capture", "transport", "request", "selection", "encode", "queue", "first_token", "final_token"),
                *("sse_transport", "parse", "validation"),
                *("capture_to_first_token", "capture_to_answer", "workflow"),
            }
            assert all((stage.low_ms or 0) >= 0 for stage in stages.values())
            for name in ("request", "sse_transport"):  # between two clocks: a range, and no number
                assert stages[name].ms is None
                assert stages[name].high_ms is not None
            # Publisher and client are one process: one clock, and an exact age of the world.
            assert stages["capture_to_answer"].ms is not None
            assert stages["capture_to_answer"].ms > 0
            assert answer.ttft_ms is not None
            assert answer.ttft_ms <= answer.elapsed_ms
        assert len(latest.frames) == 1
        assert [frame.timestamp_ms for frame in trailing.frames] == sorted(
            frame.timestamp_ms for frame in trailing.frames
        )
        assert absolute.frames
        assert all(0 <= frame.timestamp_ms < 200 for frame in absolute.frames)
        assert absolute.receipt is not None
        assert absolute.receipt.cache.thread_id == "t"
        assert (await client.state(stream.id))["end_reason"] == "deleted"


async def test_a_film_finds_its_way_past_a_public_address_with_a_folder(tmp_path: Path) -> None:
    """The gateway names an address that its proxy serves below a folder; the film goes to where the client asks."""
    public = "https://elsewhere.example/video"
    async with (
        around(saying("3"), live_public_url=public) as (_, _, client),
        published(client, film_of(tmp_path / "film.mp4")) as stream,
    ):
        assert stream.publish is not None
        assert stream.publish["url"].startswith(f"{public}/live/whip/")
        assert (await client.ask(stream.id, LiveQuestion("how many?"))).frames


async def test_offsets_get_tighter_and_hold() -> None:
    """With each question the offset to the server is as well known as before or better, within a drift of a moment;
    in one process both clocks are one, so the true offset is 0 and lies within every bound."""
    async with around(saying("a", "b")) as (_, gateway, client), client.stream() as stream:
        put(gateway, stream.id, count=1)
        offsets = []
        for _ in range(4):
            answer = await client.ask(stream.id, LiveQuestion("what?"))
            assert answer.receipt is not None
            offsets += [one for one in answer.receipt.offsets if one.behind == client.clock_id]
        assert len(offsets) == 4
        assert all(abs(one.offset_ns) <= one.bound_ns for one in offsets)
        bounds = [one.bound_ns for one in offsets]
        assert all(after <= before + 10_000_000 for before, after in itertools.pairwise(bounds))


async def test_leaving_an_answer_frees_the_model() -> None:
    """In the middle of its tokens: the gateway's permit is back and its call to the model is closed."""
    silent = streams(chunks("a")[:2], then="silent")
    async with around(silent) as (upstream, gateway, client), client.stream() as stream:
        put(gateway, stream.id, count=1)
        async with client.asking(stream.id, LiveQuestion("what?")) as answer:
            async for piece in answer:
                assert piece.text == "a"
                assert gateway.admission.in_use == 1
                break
        await until(lambda: gateway.admission.in_use == 0 and upstream.abandoned == 1)


async def test_a_watch_sees_the_stream_move_and_end() -> None:
    """Each answer is about the newest frame of its moment; when the stream is deleted the watch ends with its 404."""
    async with around(saying("a")) as (_, gateway, client), client.stream() as stream:
        indices = []
        with pytest.raises(HttpFailure) as ended:
            put(gateway, stream.id, count=1)
            async for seen in client.watch(stream.id, LiveQuestion("what?", Latest()), every_seconds=0.02):
                assert seen.answer is not None
                indices.append(seen.answer.frames[0].frame_index)
                if len(indices) == 3:
                    await client.delete(stream.id)
                else:
                    put(gateway, stream.id, count=1)
        assert indices == [0, 1, 2]
        assert (ended.value.status, code_of(ended.value)) == (404, "stream_not_found")


async def test_a_lease_is_kept() -> None:
    """A third into the shortest lease the gateway gives a whole one, and a fresh token; it ends with its block."""
    async with around(saying("a"), live_ttl_seconds=5) as (_, gateway, client):
        async with client.stream() as stream:
            first = (await client.state(stream.id))["expires_at_ms"]
            token = stream.publish
            async with asyncio.timeout(30):
                while (await client.state(stream.id))["expires_at_ms"] < first + 1000 or stream.publish == token:
                    await asyncio.sleep(0.2)
            assert stream_of(gateway, stream.id).is_active
        assert (await client.state(stream.id))["end_reason"] == "deleted"


async def test_a_server_without_streams_is_told_so() -> None:
    """A gateway that does not serve them, or another server: what to look at, instead of a bare 404."""
    async with stub_upstream() as upstream, gateway(upstream) as rig, LiveClient(rig.url) as client:
        with pytest.raises(BrokenStream, match="LIVE_ENABLED"):
            await client.create()


async def test_the_models_of_a_gateway() -> None:
    """Their states, as the gateway lists them."""
    listed = {"object": "list", "data": [{"id": "qwen"}]}
    async with around(answers(listed)) as (_, _, client):
        assert await client.models() == {"qwen": "ready"}

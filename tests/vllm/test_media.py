"""Text, video, sound, frame rates, schemas and streams through our gateway to real vLLM."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import jsonschema
import numpy as np
import pytest
from tests.integration.gateway_rig import Rig, gateway
from tests.vllm import bodies
from tests.vllm.clips import HEIGHT, WIDTH, make_clip, make_wav, pictures
from tests.vllm.server import MODEL, TRUST, VllmServer, VllmServers

from vision_bench.answers.body import Options
from vision_bench.client.analyze import analyze
from vision_bench.client.gateway import GatewayClient
from vision_bench.client.results import read_results
from vision_bench.media.encode import jpeg
from vision_bench.wire.sse import DONE, EventParser

FRAME_PAIR_TOKENS = 140  # of a 320x240 picture; vLLM looks at two frames at a time
SOUND_TOKENS_PER_SECOND = 13
OPTIONS = Options(model=MODEL, max_tokens=32)
LABEL = {
    "type": "object",
    "properties": {
        "label": {"enum": ["cat", "dog", "ball"]},
        "score": {"type": "integer", "minimum": 0, "maximum": 9},
        "safe": {"type": "boolean"},
    },
    "required": ["label", "score", "safe"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server(vllm_server: VllmServers) -> VllmServer:
    return vllm_server.get(TRUST)


@pytest.fixture
async def rig(server: VllmServer) -> AsyncIterator[Rig]:
    async with gateway(server.base_url) as running:
        yield running


@pytest.fixture
async def client(rig: Rig) -> AsyncIterator[GatewayClient]:
    async with GatewayClient(rig.url) as ours:
        yield ours


async def counted(client: GatewayClient, body: bodies.Body) -> dict[str, int]:
    """The media tokens of a body, by kind, as vLLM counts them."""
    answer = await client.chat(body)
    assert answer.reply.usage is not None
    return dict(answer.reply.usage["prompt_tokens_details"]["multimodal_tokens"])


async def said(client: GatewayClient, body: bodies.Body) -> str:
    """The answer's text, which no answer may lack."""
    answer = await client.chat(body)
    assert answer.reply.text
    return answer.reply.text


async def test_text(client: GatewayClient, server: VllmServer) -> None:
    """A text question comes back with text, token counts and the served model's name."""
    answer = await client.chat(bodies.ask(text="What is shown?", max_tokens=8))
    assert answer.reply.text
    assert answer.reply.finish_reason == "length"
    assert answer.reply.usage is not None
    assert answer.reply.usage["completion_tokens"] == 8
    assert answer.reply.usage["prompt_tokens"] > 4
    assert answer.reply.model == server.model


async def test_request_id_is_the_answers_id(client: GatewayClient) -> None:
    """The id that a caller chose comes back in the header and inside vLLM's own answer id."""
    answer = await client.chat(bodies.ask(max_tokens=1), request_id="clip-0007")
    assert (answer.request_id, answer.reply.response_id) == ("clip-0007", "chatcmpl-clip-0007")


async def test_video(client: GatewayClient) -> None:
    """Six seconds are looked at twice a second: six pairs of frames, and no sound unless it is asked for."""
    assert await counted(client, bodies.ask(bodies.video(make_clip()))) == {"video": 6 * FRAME_PAIR_TOKENS}


async def test_video_with_its_sound(client: GatewayClient) -> None:
    """With the sound both kinds count the same span, pictures and sound interleaved, so they must not be added up."""
    tokens = await counted(client, bodies.ask(bodies.video(make_clip(tone_hz=500)), **bodies.WITH_SOUND))
    assert tokens["video"] == tokens["audio"]
    assert 0 <= tokens["video"] - 6 * FRAME_PAIR_TOKENS - 6 * SOUND_TOKENS_PER_SECOND < 8


async def test_answer_follows_picture_and_sound(client: GatewayClient) -> None:
    """At temperature 0 the same clip gets the same answer; another picture or another sound gets another."""
    first = await said(client, bodies.ask(bodies.video(make_clip(picture=1, tone_hz=600)), **bodies.WITH_SOUND))
    again = await said(client, bodies.ask(bodies.video(make_clip(picture=1, tone_hz=600)), **bodies.WITH_SOUND))
    heard = await said(client, bodies.ask(bodies.video(make_clip(picture=1, tone_hz=0)), **bodies.WITH_SOUND))
    seen = await said(client, bodies.ask(bodies.video(make_clip(picture=2, tone_hz=700)), **bodies.WITH_SOUND))
    assert first == again
    assert heard != first
    assert seen != first


@pytest.mark.parametrize(("fps", "pairs"), [(0.5, 2), (1, 3), (2, 6), (4, 12)])
async def test_fps(client: GatewayClient, fps: float, pairs: int) -> None:
    """fps decides how many frames are looked at, never fewer than four."""
    tokens = await counted(client, bodies.ask(bodies.video(make_clip(tone_hz=None)), **bodies.at_fps(fps)))
    assert tokens == {"video": pairs * FRAME_PAIR_TOKENS}


@pytest.mark.parametrize("num_frames", [4, 16, -1])
async def test_num_frames_is_ignored_for_a_file(client: GatewayClient, num_frames: int) -> None:
    """num_frames changes nothing for an MP4: the Qwen loader follows fps."""
    body = bodies.ask(bodies.video(make_clip(tone_hz=None)), media_io_kwargs={"video": {"num_frames": num_frames}})
    assert await counted(client, body) == {"video": 6 * FRAME_PAIR_TOKENS}


async def test_num_frames_holds_for_pictures(client: GatewayClient) -> None:
    """Eight JPEG pictures sent as a video are four pairs; num_frames 4 makes them two."""
    jpegs = [jpeg(frame) for frame in pictures(8, 3)]
    address = "data:video/jpeg;base64," + ",".join(bodies.uri(picture).partition(",")[2] for picture in jpegs)
    assert await counted(client, bodies.ask(bodies.video(address))) == {"video": 4 * FRAME_PAIR_TOKENS}
    fewer = bodies.ask(bodies.video(address), media_io_kwargs={"video": {"num_frames": 4}})
    assert await counted(client, fewer) == {"video": 2 * FRAME_PAIR_TOKENS}


async def test_sound_and_picture_alone(client: GatewayClient) -> None:
    """A WAV and a JPEG are parts of their own."""
    assert await counted(client, bodies.ask(bodies.audio(make_wav()))) == {"audio": 2 * SOUND_TOKENS_PER_SECOND}
    still = bodies.uri(jpeg(np.full((HEIGHT, WIDTH, 3), 90, np.uint8)), "image/jpeg")
    tokens = await counted(client, bodies.ask({"type": "image_url", "image_url": {"url": still}}))
    assert set(tokens) == {"image"}


async def test_strict_schema(client: GatewayClient) -> None:
    """A strict schema holds the answer to a video: valid JSON, ended by itself."""
    body = bodies.ask(bodies.video(make_clip()), max_tokens=100, **bodies.schema("label", LABEL))
    answer = await client.chat(body)
    assert answer.reply.finish_reason == "stop"
    jsonschema.validate(json.loads(answer.reply.text or ""), LABEL)


async def test_stream_with_usage(client: GatewayClient) -> None:
    """A streamed answer is the unstreamed one in pieces, and ends with a finish reason and token counts."""
    body = bodies.ask(bodies.video(make_clip(picture=4)))
    whole = await client.chat(body)
    async with client.stream_chat(body) as stream:
        pieces = [delta.text async for delta in stream if delta.text]
    assert len(pieces) > 4
    assert "".join(pieces) == stream.reply.text == whole.reply.text
    assert stream.reply.finish_reason == "length"
    assert stream.reply.usage is not None
    assert stream.reply.usage["completion_tokens"] == 16
    assert stream.reply.usage["prompt_tokens_details"]["multimodal_tokens"] == {"video": 6 * FRAME_PAIR_TOKENS}


async def test_stream_is_passed_untouched(rig: Rig, server: VllmServer) -> None:
    """Event for event the gateway's stream is vLLM's own; only ids and times differ."""
    body = bodies.ask(stream=True, stream_options={"include_usage": True})

    async def events(client: httpx.AsyncClient, path: str) -> list[object]:
        answer = await client.post(path, json=body)
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        found = [event.data for event in EventParser().feed(answer.content)]
        assert found[-1] == DONE
        return [{k: v for k, v in json.loads(data).items() if k not in ("id", "created")} for data in found[:-1]]

    async with httpx.AsyncClient(base_url=server.root, timeout=60, trust_env=False) as direct:
        assert await events(rig.client, "/chat") == await events(direct, "/v1/chat/completions")


async def test_batch(client: GatewayClient) -> None:
    """A batch of clips comes back a line each, with the answers that they get one at a time."""
    asked = {f"clip-{n}": bodies.ask(bodies.video(make_clip(picture=n, tone_hz=None))) for n in range(4)}
    lines = {line.id: line async for line in client.batch(list(asked.items()))}
    assert {line.status for line in lines.values()} == {200}
    for name, body in asked.items():
        line = lines[name]
        assert line.body is not None
        assert line.elapsed_ms is not None
        assert line.elapsed_ms > 0
        assert line.body["choices"][0]["message"]["content"] == await said(client, body)


async def test_gateway_keeps_its_limit(server: VllmServer) -> None:
    """However many items a batch holds, vLLM never runs more than the permits allow."""
    async with gateway(server.base_url, vllm_concurrency=2) as rig:
        long = [{"id": str(n), "body": bodies.ask(max_tokens=200, seed=n)} for n in range(8)]
        batch = asyncio.create_task(rig.batch(long))
        seen = []
        while not batch.done():
            seen.append(await asyncio.to_thread(server.metric, "vllm:num_requests_running"))
            await asyncio.sleep(0.05)
        assert {line["status"] for line in batch.result()} == {200}
    assert 1 <= max(seen) <= 2


async def test_same_sound_under_another_picture(rig: Rig, tmp_path: Path) -> None:
    """With vLLM's processor cache on, sound that it knows under a new picture is 400; the client says what to do."""
    for picture in (10, 11):
        (tmp_path / f"clip-{picture}.mp4").write_bytes(make_clip(picture=picture, tone_hz=333, seconds=2))
    out = tmp_path / "results.ndjson"
    for picture in (10, 11):
        await analyze([tmp_path / f"clip-{picture}.mp4"], gateway=rig.url, out=out, options=OPTIONS)
    first, second = read_results(out).lines
    assert first.status == 200, first.error
    assert (second.status, second.outcome) == (400, "http_error")
    assert "audio_in_video" in (second.error or "")
    assert "--mm-processor-cache-gb 0" in (second.error or "")

"""analyze: clips on disk, through a gateway, to a results file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.gateway_rig import gateway
from tests.integration.stub_upstream import Behaviour, StubRequest, answers, response, stub_upstream
from tests.integration.tiny_clips import tiny_clip, write_clips

from vision_bench.answers.analysis import Question, default_question
from vision_bench.answers.body import Options
from vision_bench.client.analyze import analyze
from vision_bench.client.results import ResultLine, read_results
from vision_bench.errors import ConnectFailed

RESULT = {"scene": "빨간 배경", "speech": "신호음", "on_screen_text": "없음", "summary": "네모가 움직인다."}


def reply(content: object = RESULT, *, finish_reason: str = "stop") -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return {
        "id": "chatcmpl-1",
        "model": "qwen",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
    }


def video(request: StubRequest) -> bytes:
    """The data: URI of a request's clip."""
    uri: str = request.json()["messages"][0]["content"][0]["video_url"]["url"]
    return uri.encode()


def lines(out: Path) -> dict[str, ResultLine]:
    return {line.clip_id: line for line in read_results(out).lines}


async def test_every_clip_gets_its_line(tmp_path: Path) -> None:
    """Good, without sound, damaged: three kinds of line, all fields as documented."""
    clips = write_clips(tmp_path / "clips", 3)
    clips[1].write_bytes(tiny_clip(has_audio=False))
    clips[2].write_bytes(b"not a video")
    out = tmp_path / "runs" / "results.ndjson"
    async with stub_upstream(answers(reply())) as stub, gateway(stub) as rig:
        summary = await analyze(clips, gateway=rig.url, out=out)
        bodies = {video(request): request.json() for request in stub.requests}
    good, silent, damaged = (lines(out)[clip.stem] for clip in clips)
    assert (good.outcome, good.result, good.status, good.use_audio_in_video) == ("ok", RESULT, 200, True)
    assert good.fps == 2.0 and good.sha256 and len(good.sha256) == 64 and good.clip == str(clips[0])
    assert good.usage == {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
    assert good.elapsed_ms is not None and good.raw is None and good.error is None
    assert (silent.outcome, silent.use_audio_in_video, silent.warnings) == ("ok", False, ("no_audio",))
    assert (damaged.outcome, damaged.status, damaged.result) == ("invalid_media", None, None)
    assert clips[2].name in (damaged.error or "")
    assert sorted("mm_processor_kwargs" in body for body in bodies.values()) == [False, True]
    assert (summary.ok, summary.failed, summary.outcomes) == (2, 1, {"ok": 2, "invalid_media": 1})
    assert (summary.latency_ms.count, summary.prompt_tokens) == (2, 1800) and not summary.is_complete


async def test_second_run_asks_only_for_what_is_missing_or_failed(tmp_path: Path) -> None:
    """Three good answers stay; the failed one is asked again and replaces its line; new bytes are asked about anew."""
    clips = write_clips(tmp_path / "clips", 4)
    out = tmp_path / "results.ndjson"
    async with stub_upstream(answers(reply())) as stub, gateway(stub) as rig:
        await analyze(clips[:3], gateway=rig.url, out=out)
        stub.behaviour = answers(reply('{"scene": "야구', finish_reason="length"))
        await analyze(clips, gateway=rig.url, out=out)
        assert lines(out)[clips[3].stem].outcome == "length"
        stub.behaviour = answers(reply())
        stub.requests.clear()
        clips[0].write_bytes(tiny_clip(colour=(1, 2, 3)))
        seen: list[ResultLine | None] = []
        summary = await analyze(clips, gateway=rig.url, out=out, on_line=seen.append)
    assert len(stub.requests) == 2 and seen.count(None) == 2
    assert (summary.kept, summary.ok, summary.is_complete) == (2, 4, True)
    assert out.read_bytes().count(b"\n") == 4


async def test_other_settings_or_another_question_ask_again(tmp_path: Path) -> None:
    """An answer belongs to the question and settings it was given to; both stay in the file."""
    (clip,) = write_clips(tmp_path / "clips", 1)
    out = tmp_path / "results.ndjson"
    async with stub_upstream(answers(reply())) as stub, gateway(stub) as rig:
        for options, question in (
            (Options(), default_question("ko")),
            (Options(), default_question("ko")),
            (Options(fps=1.0), default_question("ko")),
            (Options(), default_question("en")),
        ):
            await analyze([clip], gateway=rig.url, out=out, options=options, question=question)
    assert len(stub.requests) == 3 and len(read_results(out).lines) == 3


async def test_own_question_with_own_schema(tmp_path: Path) -> None:
    """The schema goes to the server and the answer is held to it."""
    clips = write_clips(tmp_path / "clips", 2)
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}

    async def by_colour(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        assert request.json()["response_format"]["json_schema"]["schema"] == schema
        content: object = {"score": 3} if len(stub.requests) == 1 else {"points": 3}
        writer.write(response(json.dumps(reply(content)).encode()))

    async with stub_upstream(by_colour) as stub, gateway(stub, vllm_concurrency=1) as rig:
        await analyze(clips, gateway=rig.url, out=tmp_path / "r.ndjson", question=Question("Score?", schema, "score"))
    found = sorted(lines(tmp_path / "r.ndjson").values(), key=lambda line: line.outcome)
    assert [(line.outcome, line.result) for line in found] == [("missing_field", None), ("ok", {"score": 3})]
    assert found[0].raw == '{"points": 3}' and found[0].error == "missing: score"


@pytest.mark.parametrize(
    ("behaviour", "outcome", "says"),
    [
        (
            answers({"error": {"message": "Video doesn't have audio track with `audio_in_video=True`"}}, status=400),
            "http_error",
            "--mm-processor-cache-gb 0",
        ),
        (
            answers({"error": {"message": "Per-request mm_processor_kwargs are disabled by default"}}, status=400),
            "http_error",
            "--trust-request-mm-kwargs",
        ),
        (answers({"error": {"message": "died", "code": None}}), "upstream_error", "died"),
        (answers(reply('assistant\n{"scene": ""}')), "echo", "assistant"),
        (answers(reply("")), "empty", "no text"),
    ],
)
async def test_failures_have_a_name_and_a_remedy(tmp_path: Path, behaviour: Behaviour, outcome: str, says: str) -> None:
    """What the server said, and what to do about it where that is known."""
    (clip,) = write_clips(tmp_path / "clips", 1)
    async with stub_upstream(behaviour) as stub, gateway(stub) as rig:
        await analyze([clip], gateway=rig.url, out=tmp_path / "r.ndjson")
    (line,) = read_results(tmp_path / "r.ndjson").lines
    assert line.outcome == outcome and says in (line.error or "")


async def test_gateways_own_failures_keep_their_class(tmp_path: Path) -> None:
    """A timeout of the upstream is not an HTTP error of the model."""
    clips = write_clips(tmp_path / "clips", 2)
    async with (
        stub_upstream(answers(reply(), delay_seconds=30)) as stub,
        gateway(stub, vllm_timeout_seconds=0.3) as rig,
    ):
        summary = await analyze(clips, gateway=rig.url, out=tmp_path / "r.ndjson")
    assert summary.outcomes == {"upstream_timeout": 2}


async def test_a_batch_too_large_for_the_gateway_is_split(tmp_path: Path) -> None:
    """413 over MAX_BATCH_ITEMS costs nothing but a second try."""
    clips = write_clips(tmp_path / "clips", 8)
    async with stub_upstream(answers(reply())) as stub, gateway(stub, max_batch_items=3) as rig:
        summary = await analyze(clips, gateway=rig.url, out=tmp_path / "r.ndjson")
    assert summary.is_complete and len(stub.requests) == 8


async def test_clips_with_one_name_in_two_folders_are_two_clips(tmp_path: Path) -> None:
    """Ids are told apart on the wire; each line has its own path."""
    clips = write_clips(tmp_path / "a", 1) + write_clips(tmp_path / "b", 1)
    async with stub_upstream(answers(reply())) as stub, gateway(stub) as rig:
        summary = await analyze(clips, gateway=rig.url, out=tmp_path / "r.ndjson")
    assert summary.is_complete
    assert {line.clip for line in read_results(tmp_path / "r.ndjson").lines} == {str(clip) for clip in clips}


async def test_straight_to_a_model_server(tmp_path: Path) -> None:
    """An address with /v1 needs no gateway; a few calls at once, each failure its own line."""
    clips = write_clips(tmp_path / "clips", 6)

    async def third_fails(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        assert request.path in ("/v1/chat/completions", "/v1/models")
        await asyncio.sleep(0.02)
        is_bad = request.headers.get("x-request-id", "").endswith("-2")
        writer.write(
            response(b'{"error": {"message": "bad"}}', status=400) if is_bad else response(json.dumps(reply()).encode())
        )

    async with stub_upstream(third_fails) as stub:
        summary = await analyze(clips, gateway=stub.base_url, out=tmp_path / "r.ndjson")
    assert summary.outcomes == {"ok": 5, "http_error": 1} and stub.most_running <= 4
    assert lines(tmp_path / "r.ndjson")[clips[2].stem].error == "bad"


async def test_plain_openai_dialect_sends_pictures_and_a_wav(tmp_path: Path) -> None:
    """Four parts, none of vLLM's own keys, no string limits in the schema."""
    (clip,) = write_clips(tmp_path / "clips", 1)
    async with stub_upstream(answers(reply())) as stub:
        options = Options(dialect="openai")
        await analyze([clip], gateway=stub.base_url, out=tmp_path / "r.ndjson", options=options)
    (body,) = (request.json() for request in stub.requests if request.body)
    kinds = [part["type"] for part in body["messages"][0]["content"]]
    assert kinds == ["image_url", "image_url", "image_url", "input_audio", "text"]
    assert not {"media_io_kwargs", "mm_processor_kwargs", "chat_template_kwargs"} & body.keys()
    assert "maxLength" not in json.dumps(body)
    (line,) = read_results(tmp_path / "r.ndjson").lines
    assert line.outcome == "ok" and line.fps is None and line.use_audio_in_video is False


async def test_nobody_at_the_gateway_writes_nothing(tmp_path: Path) -> None:
    """The run ends before a line is written."""
    clips = write_clips(tmp_path / "clips", 1)
    with pytest.raises(ConnectFailed):
        await analyze(clips, gateway="http://127.0.0.1:9", out=tmp_path / "r.ndjson")
    assert not (tmp_path / "r.ndjson").exists()


async def test_gateway_lost_in_mid_run_stops_and_a_second_run_ends_it(tmp_path: Path) -> None:
    """Answers that came are kept, the batches under way fail by name, the rest is not attempted."""
    clips = write_clips(tmp_path / "clips", 12)
    out = tmp_path / "r.ndjson"

    async with stub_upstream(answers(reply())) as stub:
        async with gateway(stub) as rig:
            first = await analyze(clips[:4], gateway=rig.url, out=out, batch_size=2)
            assert first.is_complete

            def stop(line: ResultLine | None) -> None:
                rig.server.should_exit = True

            second = await analyze(clips, gateway=rig.url, out=out, batch_size=1, on_line=stop)
        assert second.kept == 4 and second.ok < 12 and second.not_attempted > 0
        assert second.ok + second.failed + second.not_attempted == 12
        async with gateway(stub) as rig:
            third = await analyze(clips, gateway=rig.url, out=out)
    assert third.is_complete and out.read_bytes().count(b"\n") == 12

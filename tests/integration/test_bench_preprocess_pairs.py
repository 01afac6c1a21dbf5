"""What media cost before the model, by paired differences: against a server whose caches and times are known."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.integration.bench_rig import workload_file
from tests.integration.stub_upstream import CHAT_ANSWER, StubRequest, answers, response, stub_upstream
from tests.integration.tiny_clips import write_clips

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run
from vision_bench.bench.rundir import read_records
from vision_bench.errors import InvalidRequest, UpstreamError

SUMMARY_SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "run-summary.schema.json").read_bytes())
MEDIA_TOKENS, TEMPLATE_TOKENS = 300, 20
TEXT_SECONDS, CACHED_SECONDS, FRESH_SECONDS = 0.0, 0.1, 0.3
VALUES: dict[str, Any] = {"media": "video", "clips": "clips", "stream": False, "cache": "unique", "system": "Be brief."}


class CachingServer:
    """Knows clips by their bytes; a text of n words has n tokens, a clip 300."""

    def __init__(self, *, tells_usage: bool = True) -> None:
        self.tells_usage = tells_usage
        self.clips: set[str] = set()
        self.beginnings: list[str] = []
        self.texts: list[int] = []

    async def __call__(self, request: StubRequest, writer: Any) -> None:
        if request.path != "/v1/chat/completions":
            await answers({"error": "none"}, status=404)(request, writer)
            return
        body = request.json()
        *before, user = body["messages"]
        self.beginnings.append(before[0]["content"])
        tokens, seconds = TEMPLATE_TOKENS, TEXT_SECONDS
        if isinstance(user["content"], str):
            tokens += len(user["content"].split())
            self.texts.append(tokens)
        else:
            clip = user["content"][0]["video_url"]["url"]
            tokens += MEDIA_TOKENS + len(user["content"][1]["text"].split())
            seconds = CACHED_SECONDS if clip in self.clips else FRESH_SECONDS
            self.clips.add(clip)
        await asyncio.sleep(seconds)
        usage = {"usage": {"prompt_tokens": tokens, "completion_tokens": 1}} if self.tells_usage else {"usage": None}
        writer.write(response(json.dumps(CHAT_ANSWER | usage).encode()))
        await writer.drain()


async def probed(server: CachingServer, folder: Path, pairs: int = 6, **values: Any) -> Any:
    write_clips(folder / "clips", 2)
    file = workload_file(folder, **VALUES | values)
    plan = LoadPlan(rates=[20], concurrency=(), arrivals=parse_process("constant"), max_requests=3)
    async with stub_upstream(server) as stub:
        url = f"http://127.0.0.1:{stub.port}/v1"
        return await run(RunOptions(file, url, folder / "run", plan, own={"preprocess_pairs": pairs}))


async def test_the_differences_are_the_servers(tmp_path: Path) -> None:
    """300 ms for a clip it does not know, 100 for one it does, none for a text of as many tokens; every request begins
    in its own way, and the run after it sends clips that no pair has sent.
    """
    server = CachingServer()
    summary = await probed(server, tmp_path)
    told = summary["preprocess_pairs"]
    assert told["media_less_text_ms"]["count"] == told["uncached_less_cached_ms"]["count"] == told["pairs"] == 6
    assert told["media_less_text_ms"]["p50"] == pytest.approx(300, abs=150)
    assert told["uncached_less_cached_ms"]["p50"] == pytest.approx(200, abs=150)
    assert told["text_prompt_tokens"]["p50"] == pytest.approx(told["prompt_tokens"]["p50"], abs=1)
    own = server.beginnings[: 2 + 3 * 7]
    assert len(set(own)) == len(own) and all(begun.endswith("Be brief.") for begun in own)
    assert len(server.clips) == 7 + 3
    records = list(read_records(tmp_path / "run", ChatRecord))
    assert sorted(record.ordinal for record in records) == [7, 8, 9]
    stages = {stage["stage"]: stage for stage in summary["steps"][0]["stages"]}
    assert stages["decoding_and_preprocessing"]["ms"] == told["media_less_text_ms"]
    assert "paired difference" in stages["decoding_and_preprocessing"]["source"]
    jsonschema.validate(summary, SUMMARY_SCHEMA)


async def test_a_server_that_tells_no_tokens_has_no_pairs(tmp_path: Path) -> None:
    """The run ends before it begins, with the reason; nothing was written."""
    with pytest.raises(UpstreamError, match="tells none"):
        await probed(CachingServer(tells_usage=False), tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("values", [{"cache": "repeat"}, {"media": "none", "clips": None, "cache": "unique"}])
async def test_pairs_need_unique_clips(values: dict[str, Any], tmp_path: Path) -> None:
    """What is repeated is no new clip, and a text has no media."""
    (tmp_path / "clips").mkdir()
    write_clips(tmp_path / "clips", 1)
    given = {key: value for key, value in (VALUES | values).items() if value is not None}
    plan = LoadPlan(rates=[20], concurrency=(), arrivals=parse_process("constant"), max_requests=3)
    file = workload_file(tmp_path, **given)
    with pytest.raises(InvalidRequest, match="--preprocess-pairs needs"):
        await run(RunOptions(file, "http://127.0.0.1:9/v1", tmp_path / "run", plan, own={"preprocess_pairs": 6}))

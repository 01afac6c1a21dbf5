"""``vision-bench run`` with labels: answers scored beside their speed, through every wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.integration.bench_rig import workload_file
from tests.integration.stub_upstream import StubRequest, StubUpstream, answers, response, stub_upstream
from tests.integration.tiny_clips import write_clips

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run
from vision_bench.bench.summary import summarise_folder
from vision_bench.errors import InvalidRequest

SUMMARY_SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "run-summary.schema.json").read_bytes())
FACTS = [
    {"item": "0001_0000-0006", "fact": "team", "scorer": "contains", "value": "Bears"},
    {"item": "0002_0006-0012", "fact": "team", "scorer": "contains", "value": "Giants"},
    {"item": "*", "fact": "words", "scorer": "wer", "value": "the Bears win"},
]


async def labelled(stub: StubUpstream, folder: Path, *, path: str = "/v1", own: Any = None, **values: Any) -> Any:
    write_clips(folder / "clips", 2)
    (folder / "labels.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in FACTS))
    workload = workload_file(
        folder, **{"media": "video", "clips": "clips", "stream": False, "labels": "labels.jsonl"} | values
    )
    plan = LoadPlan(rates=(), concurrency=(1,), arrivals=parse_process("constant"), max_requests=4)
    options = RunOptions(workload, f"http://127.0.0.1:{stub.port}{path}", folder / "run", plan, own=own or {})
    return await run(options)


def answer(text: str, prompt_tokens: int = 10) -> bytes:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 3, "total_tokens": prompt_tokens + 3}
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}).encode()


async def test_every_answer_is_scored(tmp_path: Path) -> None:
    """A model that always says the same is right about one clip of two; the folder alone gives it again."""
    async with stub_upstream(answers(body=answer("The Bears win!"))) as stub:
        summary = await labelled(stub, tmp_path)
    (step,) = summary["steps"]
    accuracy = step["accuracy"]
    assert (accuracy["count"], accuracy["right"], accuracy["clips"]) == (8, 6, 2)
    assert (accuracy["answers"]["right"], step["slo"]["attained"], step["requests"]["ok"]) == (2, 2, 4)
    assert accuracy["by_fact"]["words"]["mean_value"] == 0.0 and accuracy["by_fact"]["team"]["share"] == 0.5
    jsonschema.validate(summary, SUMMARY_SCHEMA)
    assert summarise_folder(tmp_path / "run") == summary


async def test_a_batch_is_scored_too(tmp_path: Path) -> None:
    """Line by line, in whatever order they come."""

    async def batch(request: StubRequest, writer: Any) -> None:
        body = json.loads(answer("The Bears win!"))
        lines = [
            json.dumps({"id": item["id"], "status": 200, "elapsed_ms": 1, "body": body})
            for item in reversed(request.json()["items"])
        ]
        writer.write(response("\n".join([*lines, ""]).encode(), content_type="application/x-ndjson"))

    async with stub_upstream(batch) as stub:
        summary = await labelled(stub, tmp_path, path="/chat/batch", own={"batch": 2})
    accuracy = summary["steps"][0]["accuracy"]
    assert (accuracy["count"], accuracy["right"], accuracy["answers"]["count"]) == (16, 12, 8)


async def test_labels_that_match_no_clip_stop_the_run_before_it_begins(tmp_path: Path) -> None:
    """Nothing is sent, nothing is written."""
    write_clips(tmp_path / "other", 1)[0].rename(tmp_path / "other" / "else.mp4")
    (tmp_path / "one.jsonl").write_text(json.dumps(FACTS[0]) + "\n")
    async with stub_upstream() as stub:
        with pytest.raises(InvalidRequest, match="labels none of the 1 items"):
            await labelled(stub, tmp_path, clips="other", labels="one.jsonl")
    assert not (tmp_path / "run").exists() and not stub.requests


async def test_the_system_prompts_tokens_stand_apart(tmp_path: Path) -> None:
    """A server that counts 7 for it: asked before the clock starts, and in no number of the step."""

    async def count(request: StubRequest, writer: Any) -> None:
        has_system = request.path.endswith("completions") and request.json()["messages"][0]["role"] == "system"
        writer.write(response(answer("hello", 17 if has_system else 10)))

    async with stub_upstream(count) as stub:
        summary = await labelled(stub, tmp_path, system="Be brief.")
    (step,) = summary["steps"]
    assert step["system_tokens"] == 7 and step["prompt_tokens"]["mean"] == 17 and step["requests"]["due"] == 4


async def test_a_control_sends_the_same_clips_black(tmp_path: Path) -> None:
    """And says so beside every number."""
    async with stub_upstream(answers(body=answer("x"))) as stub:
        summary = await labelled(stub, tmp_path, control="blackout", height=32)
    assert summary["steps"][0]["media"] == "video, server's fps, 32 lines, blackout"

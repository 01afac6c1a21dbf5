"""``vision-bench judge``: a second model decides about the answers of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.bench_rig import workload_file
from tests.integration.stub_upstream import StubRequest, response, stub_upstream

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.judging import JudgeOptions, judge
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run
from vision_bench.bench.summary import summarise_folder
from vision_bench.errors import InvalidRequest

FACTS = [
    {"item": "text", "fact": "gist", "scorer": "judge", "value": "they win"},
    {"item": "text", "fact": "word", "scorer": "contains", "value": "answer"},
]


class Server:
    """Answers with a number of its own; as a judge it calls odd ones right and does not know about every fifth."""

    def __init__(self) -> None:
        self.answered = 0
        self.judged: list[str] = []

    async def __call__(self, request: StubRequest, writer: Any) -> None:
        body = request.json() if request.path.endswith("completions") else {"messages": []}
        text = "hello"
        if body["messages"] and body["messages"][0]["role"] == "system":
            answer = json.loads(body["messages"][1]["content"])["answer"]
            number = int(answer.split()[-1])
            self.judged.append(answer)
            text = "perhaps" if number % 5 == 0 else json.dumps({"verdict": "right" if number % 2 else "wrong"})
        elif body["messages"]:
            self.answered += 1
            text = f"answer {self.answered}"
        message = {"role": "assistant", "content": text}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        writer.write(response(json.dumps({"choices": choices}).encode()))
        await writer.drain()


async def test_verdicts_join_the_accuracy(tmp_path: Path) -> None:
    """Until there is one a fact is in no number; what has one is not asked again; what is none leaves it waiting."""
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in FACTS))
    file = workload_file(tmp_path, stream=False, labels="labels.jsonl")
    server, folder = Server(), tmp_path / "run"
    async with stub_upstream(server) as stub:
        url = f"http://127.0.0.1:{stub.port}"
        plan = LoadPlan(rates=(), concurrency=(1,), arrivals=parse_process("constant"), max_requests=10)
        summary = await run(RunOptions(file, url, folder, plan))
        facts = summary["steps"][0]["accuracy"]["by_fact"]
        assert list(facts) == ["word"] and facts["word"]["right"] == 10
        done = await judge(folder, JudgeOptions(url, "qwen"))
        assert (done.judged, done.right, done.failed) == (8, 4, 2)  # 5 and 10 are not told
        gist = summarise_folder(folder)["steps"][0]["accuracy"]["by_fact"]["gist"]
        assert (gist["count"], gist["right"], gist["scorer"]) == (8, 4, "judge")
        again = await judge(folder, JudgeOptions(url, "qwen"))
        assert (again.judged, again.failed) == (0, 2)
    assert sorted(server.judged[10:]) == ["answer 10", "answer 5"]


async def test_a_run_without_such_labels_is_refused(tmp_path: Path) -> None:
    """And so is a wire that takes batches."""
    (tmp_path / "labels.jsonl").write_text(json.dumps(FACTS[1]))
    file = workload_file(tmp_path, stream=False, labels="labels.jsonl")
    async with stub_upstream(Server()) as stub:
        url = f"http://127.0.0.1:{stub.port}"
        plan = LoadPlan(rates=(), concurrency=(1,), arrivals=parse_process("constant"), max_requests=1)
        await run(RunOptions(file, url, tmp_path / "run", plan))
        with pytest.raises(InvalidRequest, match="nothing to judge"):
            await judge(tmp_path / "run", JudgeOptions(url, "qwen"))
        with pytest.raises(InvalidRequest, match="one answer at a time"):
            await judge(tmp_path / "run", JudgeOptions(f"{url}/chat/batch", "qwen"))

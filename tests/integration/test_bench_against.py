"""Two servers under one load, compared: from the command line to the folders and pages."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.bench_rig import workload_file
from tests.integration.stub_upstream import Behaviour, StubRequest, answers, stub_upstream

from vision_bench.bench.against import arm_folders, run_pair
from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.compare import CompareOptions, compare
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions
from vision_bench.bench.rundir import read_manifest, read_records, read_steps
from vision_bench.bench.sweep import Sweep
from vision_bench.cli.main import main
from vision_bench.errors import ConnectFailed, InvalidRequest

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a verb; gives exit status, stdout, stderr."""

    def execute(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([*map(str, words)])
        printed = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return stopped.value.code, printed.out, printed.err

    return execute


def options_for(folder: Path, port: int, *, rounds: int = 2, count: int = 40) -> RunOptions:
    plan = LoadPlan(
        rates=[60, 90], concurrency=(), arrivals=parse_process("constant"), max_requests=count, repeat=rounds
    )
    file = workload_file(folder, stream=False, cache="unique")
    return RunOptions(file, f"http://127.0.0.1:{port}/chat", folder / "pair", plan, warm_up=2)


def slow_to_answer(seconds: float) -> Behaviour:
    """A server that waits before it answers a chat; what a run asks besides has its answer at once."""
    late, other = answers(delay_seconds=seconds), answers()

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        await (late if request.path == "/chat" else other)(request, writer)

    return behave


async def pair_in(folder: Path, *, delay_seconds: float = 0.3, **load: Any) -> tuple[Path, Path]:
    """A server that answers at once against one that waits."""
    async with stub_upstream(answers()) as quick, stub_upstream(slow_to_answer(delay_seconds)) as slow:
        options = options_for(folder, quick.port, **load)
        await run_pair(options, f"http://127.0.0.1:{slow.port}/chat")
    return arm_folders(options.out)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two rounds of two steps on both servers."""
    return asyncio.run(pair_in(tmp_path_factory.mktemp("pair")))


def test_arms_are_run_in_turn_under_one_load(pair: tuple[Path, Path]) -> None:
    """Two rounds of two steps: a b, b a, then the other way round; same schedules, same bodies in the same order."""
    a, b = pair
    begun = sorted(
        (log.begin["begin_ns"], log.begin["round"], log.begin["name"], folder.name)
        for folder in (a, b)
        for log in read_steps(folder)
        if log.begin["plan"] is not None
    )
    assert [(round_number, name, arm) for _, round_number, name, arm in begun] == [
        (0, "rate 60", "a"), (0, "rate 60", "b"), (0, "rate 90", "b"), (0, "rate 90", "a"),
        (1, "rate 60", "b"), (1, "rate 60", "a"), (1, "rate 90", "a"), (1, "rate 90", "b"),
    ]  # fmt: skip
    ended = [log.end["stop_ns"] for folder in (a, b) for log in read_steps(folder) if log.end]
    assert len(ended) == 10  # a warm-up and four steps each
    bodies = [
        [record.body_sha256 for record in sorted(read_records(folder, ChatRecord), key=lambda r: r.ordinal)]
        for folder in (a, b)
    ]
    assert bodies[0] == bodies[1] and len(set(bodies[0])) == 162
    assert read_manifest(a)["plan"] == read_manifest(b)["plan"]


def test_a_slower_server_is_slower(pair: tuple[Path, Path], tmp_path: Path, command: Command) -> None:
    """By 300 ms of delay, in every step's median; a gate ends with status 5, and the reverse passes it."""
    a, b = pair
    found = compare(CompareOptions(a, b, metrics=["response_ms"], resamples=300))
    assert found["is_interleaved"] and found["differences"] == []
    medians = [row for row in found["rows"] if row["percentile"] == "p50"]
    assert len(medians) == 2 and all(row["b"] > row["a"] + 100 for row in medians)
    # A machine that stalls for a while makes the requests hang together, and then nothing is claimed.
    assert all(row["verdict"] == "SLOWER" or "independent" in row["reason"] for row in medians)
    assert all(row["is_paired"] for row in found["rows"])
    words = ["--metric", "response_ms", "--resamples", "300"]
    page = tmp_path / "page.html"
    code, out, err = command("compare", a, b, *words, "--fail-on", "slower,inconclusive", "--json", "--out", page)
    assert code == 5 and "INCONCLUSIVE" in err  # 80 samples carry no p99
    assert json.loads(out)["failed_gates"] and page.is_file()
    code, out, _ = command("compare", b, a, *words, "--fail-on", "slower,less-correct")
    assert code == 0 and "INCONCLUSIVE" in out
    assert command("compare", a, b, "--fail-on", "slow")[0] == 2
    assert command("report", a, b, "--overlay")[0] == 0 and (a / "overlay.html").is_file()
    assert command("report", a, b)[0] == 2


async def test_a_pair_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    """The second arm had not begun: it runs whole, the first stays as it is, and they are one pair."""
    a, b = await pair_in(tmp_path, delay_seconds=0, rounds=1, count=5)
    shutil.rmtree(b)
    before = (a / "records.jsonl").read_bytes()
    async with stub_upstream(answers()) as one, stub_upstream(answers()) as other:
        old = read_manifest(a)["workload"]["url"]
        port = int(old.split(":")[2].split("/")[0])
        options = replace(options_for(tmp_path, port, rounds=1, count=5), is_resumed=True)
        with pytest.raises(ConnectFailed):  # the first target is gone
            await run_pair(options, f"http://127.0.0.1:{other.port}/chat")
        assert not b.exists()
        (a / "manifest.json").write_text(
            (a / "manifest.json").read_text("utf-8").replace(f":{port}/", f":{one.port}/"), "utf-8"
        )
        options = replace(options, target=f"http://127.0.0.1:{one.port}/chat")
        _, summary = await run_pair(options, f"http://127.0.0.1:{other.port}/chat")
    assert summary["is_complete"] and [step["requests"]["ok"] for step in summary["steps"]] == [5, 5]
    assert (a / "records.jsonl").read_bytes() == before
    assert read_manifest(a)["arms"] == read_manifest(b)["arms"]


async def test_what_cannot_be_a_pair_writes_nothing(tmp_path: Path) -> None:
    """Either target silent, a folder that holds something, a sweep."""
    silent = "http://127.0.0.1:1/chat"
    async with stub_upstream(answers()) as stub:
        options = options_for(tmp_path, stub.port)
        with pytest.raises(ConnectFailed):
            await run_pair(options, silent)
        with pytest.raises(ConnectFailed):
            await run_pair(replace(options, target=silent), f"http://127.0.0.1:{stub.port}/chat")
        with pytest.raises(InvalidRequest, match="--rate or --concurrency"):
            await run_pair(replace(options, sweep=Sweep()), silent)
        assert not options.out.exists()
        (options.out / "a").mkdir(parents=True)
        (options.out / "a" / "manifest.json").write_text("{}")
        with pytest.raises(InvalidRequest, match="no arm of a pair"):
            await run_pair(replace(options, is_resumed=True), silent)
        with pytest.raises(InvalidRequest, match="not empty"):
            await run_pair(options, silent)

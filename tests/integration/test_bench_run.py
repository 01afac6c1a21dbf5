"""``vision-bench run`` from its command line to its folder: against the declared engine and against servers in trouble.

Times are held to bounds that any machine keeps; how exact the client is on a quiet one is measured elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from tests.integration.bench_rig import workload_file
from tests.integration.engine_rig import engine_process
from tests.integration.stub_upstream import CHAT_ANSWER, StubRequest, StubUpstream, answers, stub_upstream

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.calibrate import calibrate
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run
from vision_bench.bench.rundir import read_records, read_steps
from vision_bench.bench.summary import summarise_folder
from vision_bench.bench.sweep import Sweep, knee, read_points
from vision_bench.cli.main import main
from vision_bench.errors import InvalidRequest
from vision_bench.stats import percentile

TTFT_MS, ITL_MS, TOKENS = 60.0, 10.0, 16
DECLARED = (
    *("--preprocess-ms", "0", "--encoder-ms", "0", "--prefill-ms", str(TTFT_MS)),
    *("--decode-ms", str(ITL_MS), "--tokens", str(TOKENS), "--max-num-seqs", "64"),
)
SUMMARY_SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "run-summary.schema.json").read_bytes())


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """A declared engine in a process of its own: its root URL."""
    with engine_process(*DECLARED) as (url, _):
        yield url


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Run the verb; gives the exit status and what --json printed, or the message."""

    def execute(*words: object) -> tuple[int, Any]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(["run", *map(str, words), "--json"])
        printed = capsys.readouterr()
        code = stopped.value.code
        assert isinstance(code, int)
        return code, json.loads(printed.out) if printed.out else printed.err

    return execute


async def run_against(stub: StubUpstream, folder: Path, *, path: str = "/v1", **options: Any) -> Any:
    """A run inside this event loop, so that the stub can misbehave meanwhile."""
    names = {key: options.pop(key) for key in ("own", "slo", "warm_up") if key in options}
    values = options.pop("values", {"stream": False})
    plan = LoadPlan(**{"rates": (), "concurrency": (), "arrivals": parse_process("constant")} | options)
    file = workload_file(folder, **values)
    return await run(RunOptions(file, f"http://127.0.0.1:{stub.port}{path}", folder / "run", plan, **names))


def test_what_the_engine_declared_comes_back(engine: str, tmp_path: Path, command: Any) -> None:
    """Counts are exact, nothing is stamped before it happened, and the quarter least late is within 25 ms of it."""
    out = tmp_path / "run"
    slo = f"tpot_ms<{ITL_MS * 3:g}"
    code, summary = command(
        workload_file(tmp_path), "--target", engine, "--out", out, "--rate", "10", "--duration", "4", "--warmup", "2",
        "--arrivals", "constant", "--slo", slo,
    )  # fmt: skip
    assert code == 0 and summary["is_complete"]
    (step,) = summary["steps"]
    assert step["requests"]["due"] == step["requests"]["ok"] == 40
    assert (step["offered_rate"], step["completion_tokens"]["mean"], step["finish_reasons"]) == (
        10,
        TOKENS,
        {"stop": 40},
    )
    assert (step["ttft_ms"]["count"], step["icl_ms"]["count"], step["itl_ms"]["count"]) == (40, 600, 600)
    assert step["tpot_ms"]["p50"] == pytest.approx(ITL_MS, rel=0.2)
    assert step["server"]["histograms"]["vllm:time_to_first_token_seconds"]["count"] == 40
    assert step["server"]["histograms"]["vllm:request_prefill_time_seconds"]["mean_ms"] >= TTFT_MS - 1
    assert step["server"]["counters"]["vllm:generation_tokens_total"] == 40 * TOKENS
    records = [record for record in read_records(out, ChatRecord) if record.step == step["step"]]
    truth = {line["request_id"]: line for line in map(json.loads, httpx.get(f"{engine}/truth").text.splitlines())}
    errors = []
    for record in records:
        kept = truth[str(record.request_id)]
        assert kept["tokens"] == len(record.k_ns) == TOKENS
        # Both clocks are this machine's: nothing is received before it was sent.
        assert record.hdr_ns is not None and record.hdr_ns <= kept["arrived_ns"]
        assert record.k_ns[0] >= kept["first_token_ns"] - 1_000_000
        errors.append((record.k_ns[0] - record.hdr_ns) / 1e6 - kept["ttft_ms"])
    assert percentile(errors, 0.25) < 25
    assert len({record.index for record in records}) == 40
    assert json.loads((out / "summary.json").read_bytes()) == summary == summarise_folder(out)
    jsonschema.validate(summary, SUMMARY_SCHEMA)


@pytest.mark.heavy
def test_every_arrival_is_accounted_for_when_requests_fail(tmp_path: Path, command: Any) -> None:
    """A third of the requests fail on purpose: as many as the engine says, under one word each, and status 3."""
    for fail_as, outcome in (("503", "http_error"), ("truncate", "truncated"), ("error-event", "error")):
        with engine_process(*DECLARED, "--fail-rate", "0.3", "--fail-as", fail_as) as (url, _):
            folder = tmp_path / fail_as
            folder.mkdir()
            code, summary = command(
                workload_file(folder), "--target", url, "--out", folder / "run", "--rate", "30", "--requests", "45"
            )
            lines = [json.loads(line) for line in httpx.get(f"{url}/truth").text.splitlines()]
        counts = summary["steps"][0]["requests"]
        good = sum(line["outcome"] == "ok" for line in lines)
        assert code == 3 and 0 < good < 45
        assert counts["due"] == 45 and counts["outcomes"] == {outcome: 45 - good, "ok": good}
        assert summary["steps"][0]["response_ms"]["count"] == 45


def test_more_than_the_server_can_take_is_called_saturated(tmp_path: Path, command: Any) -> None:
    """One place of 60 ms is 17 a second; 60 a second are offered for 2 s, and all are answered in the end.

    Half of them wait for 2 s: a machine that stands still for 0.2 s does not make that the client's fault.
    """
    one_place = ("--preprocess-ms", "0", "--encoder-ms", "0", "--prefill-ms", "60", "--tokens", "1")
    with engine_process(*one_place, "--max-num-seqs", "1") as (url, _):
        code, summary = command(
            workload_file(tmp_path), "--target", url, "--out", tmp_path / "run", "--rate", "60", "--duration", "2"
        )
    (step,) = summary["steps"]
    assert (code, step["requests"]["due"], step["requests"]["ok"]) == (0, 120, 120)
    assert step["verdict"] == "SATURATED", step["verdict_reason"]
    assert step["achieved_rate"] < 20 and step["scheduled_ttft_ms"]["p50"] > 1000


def test_closed_lanes_hold_their_number(engine: str, tmp_path: Path, command: Any) -> None:
    """One and four lanes, each a step of its own with its own records; nothing is offered."""
    code, summary = command(
        workload_file(tmp_path),
        "--target",
        engine,
        "--out",
        tmp_path / "run",
        "--concurrency",
        "1,4",
        "--requests",
        "8",
    )
    one, four = summary["steps"]
    assert code == 0 and (one["name"], four["name"]) == ("concurrency 1", "concurrency 4")
    assert (one["offered_rate"], one["requests"]["due"], four["requests"]["due"]) == (None, 8, 8)
    assert one["in_flight"]["mean"] == pytest.approx(1, abs=0.1)
    assert 2 < four["in_flight"]["mean"] <= 4.01
    assert four["duration_seconds"] < one["duration_seconds"]


def every_second(special: Any, other: Any) -> Any:
    """Treat requests to the chat route in turn; the model list is not there."""
    count = 0

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        if request.path == "/v1/models":
            await answers({"error": "none"}, status=404)(request, writer)
            return
        count += 1
        await (special if count % 2 else other)(request, writer)

    return behave


async def test_half_failing_is_half(tmp_path: Path) -> None:
    """Throughput counts successes only."""
    async with stub_upstream(every_second(answers({"error": "x"}, status=500), answers())) as stub:
        summary = await run_against(stub, tmp_path, rates=[20], duration_seconds=2)
    (step,) = summary["steps"]
    assert step["requests"]["outcomes"] == {"http_error": 20, "ok": 20}
    assert step["slo"]["attainment"] == 0.5
    assert step["achieved_rate"] == pytest.approx(10, rel=0.2)


async def test_a_server_that_is_gone_for_a_while_does_not_end_the_run(tmp_path: Path) -> None:
    """It goes on at its rate; what met a closed port is counted as that."""
    async with stub_upstream() as stub:
        port = stub.port
        task = asyncio.create_task(run_against(stub, tmp_path, rates=[20], duration_seconds=3))
        await asyncio.sleep(1)
        stub.stop()
        await asyncio.sleep(1)
        async with stub_upstream(port=port):
            summary = await task
    counts = summary["steps"][0]["requests"]
    assert counts["due"] == 60 == counts["ok"] + counts["failed"]
    assert counts["outcomes"]["connect_failed"] >= 10 and counts["ok"] >= 20


async def test_with_a_cap_both_waits_are_told(tmp_path: Path) -> None:
    """10 a second planned, one at a time, 200 ms each, 10 requests: from the plan about 1.1 s, from sending 0.2 s."""
    async with stub_upstream(answers(delay_seconds=0.2)) as stub:
        summary = await run_against(stub, tmp_path, rates=[10], concurrency=[1], max_requests=10)
        assert stub.most_running == 1
    (step,) = summary["steps"]
    assert step["e2e_ms"]["mean"] == pytest.approx(200, rel=0.4)
    assert step["response_ms"]["mean"] > 500
    assert (step["requests"]["due"], step["requests"]["ok"], step["offered_rate"]) == (10, 10, 10)


async def test_repeated_bodies_are_counted(tmp_path: Path) -> None:
    """One prompt ten times is nine repeats; with a number in front of each text there is none."""
    async with stub_upstream() as stub:
        for name, cache in (("a", "repeat"), ("b", "unique")):
            (tmp_path / name).mkdir()
            values = {"stream": False, "cache": cache}
            summary = await run_against(stub, tmp_path / name, rates=[50], max_requests=10, values=values)
            assert summary["steps"][0]["repeats"] == (9 if cache == "repeat" else 0)


async def test_batches_are_arrivals(tmp_path: Path) -> None:
    """Five batches of three items each: five are due, and their tokens are those of fifteen answers."""

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        lines = [
            {"id": item["id"], "status": 200, "elapsed_ms": 1, "body": CHAT_ANSWER} for item in request.json()["items"]
        ]
        payload = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        await answers(payload, content_type="application/x-ndjson")(request, writer)

    async with stub_upstream(every_second(behave, behave)) as stub:
        summary = await run_against(stub, tmp_path, path="/chat/batch", rates=[10], max_requests=5, own={"batch": 3})
    (step,) = summary["steps"]
    assert (step["requests"]["due"], step["requests"]["ok"]) == (5, 5)
    assert step["completion_tokens"]["mean"] == 6 and step["ttft_ms"]["count"] == 0


def slow_run(engine: str, folder: Path, *more: str) -> list[str]:
    words = ["run", str(workload_file(folder)), "--target", engine, "--out", str(folder / "run"), "--rate", "20"]
    words += ["--duration", "1", "--repeat", "2", "--arrivals", "constant", *more]
    return [sys.executable, "-m", "vision_bench.cli", *words]


def until_records(folder: Path, count: int) -> None:
    for _ in range(1000):
        path = folder / "run" / "records.jsonl"
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)
    raise AssertionError("no records came")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.heavy)])
def test_a_run_that_was_cut_off_is_readable_and_goes_on(
    how: signal.Signals, engine: str, tmp_path: Path, command: Any
) -> None:
    """In its second step: the first is kept as it was, the second runs again under a new number, nothing is mixed."""
    with subprocess.Popen(slow_run(engine, tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until_records(tmp_path, 25)
        process.send_signal(how)
        assert process.wait(30) == (-9 if how is signal.SIGKILL else 130)
    out = tmp_path / "run"
    cut = summarise_folder(out)
    jsonschema.validate(cut, SUMMARY_SCHEMA)
    assert [step["is_complete"] for step in cut["steps"]] == [True, False]
    assert cut["steps"][1]["verdict"] == "UNDETERMINED"
    counts = cut["steps"][1]["requests"]
    assert counts["due"] == sum(counts["outcomes"].values()) >= 5
    if how is not signal.SIGKILL:
        assert json.loads((out / "summary.json").read_bytes()) == cut
    done = subprocess.run(slow_run(engine, tmp_path, "--resume", "--json"), capture_output=True, check=True)
    whole = json.loads(done.stdout)
    assert whole["is_complete"] and whole["steps"][0] == cut["steps"][0]
    assert [(step["step"], step["requests"]["ok"]) for step in whole["steps"]] == [(1, 20), (3, 20)]
    assert [(log.step, log.is_complete) for log in read_steps(out)] == [(1, True), (2, False), (3, True)]
    ordinals = [record.ordinal for record in read_records(out, ChatRecord)]
    assert len(set(ordinals)) == len(ordinals)


def test_another_run_is_not_gone_on_with(engine: str, tmp_path: Path, command: Any) -> None:
    """Other options, or no --resume: nothing is overwritten."""
    words = [workload_file(tmp_path), "--target", engine, "--out", tmp_path / "run", "--rate", "20"]
    assert command(*words, "--requests", "2")[0] == 0
    before = (tmp_path / "run" / "records.jsonl").read_bytes()
    code, message = command(*words, "--requests", "2")
    assert code == 2 and "--resume" in message
    code, message = command(*words, "--requests", "3", "--resume")
    assert code == 2 and "plan differs" in message
    assert command(*words, "--requests", "2", "--resume")[0] == 0
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == before


def test_what_cannot_be_run_writes_nothing(engine: str, tmp_path: Path, command: Any) -> None:
    """An unreachable target, an unknown model, a bad file, bad options: one line, a status, and no folder."""
    out = tmp_path / "run"
    good = workload_file(tmp_path)
    (tmp_path / "other").mkdir()
    bad = workload_file(tmp_path / "other", max_tokens=0)
    (tmp_path / "model").mkdir()
    model = workload_file(tmp_path / "model", model="gemma")
    (tmp_path / "kind").mkdir()
    kind = workload_file(tmp_path / "kind", kind="film")
    for words, status, says in (
        ([good, "--target", "http://127.0.0.1:1/chat", "--rate", "1"], 4, "nobody answers"),
        ([model, "--target", engine, "--rate", "1"], 2, "does not serve the model 'gemma'"),
        ([bad, "--target", engine, "--rate", "1"], 2, "budget"),
        ([kind, "--target", engine, "--rate", "1"], 2, "no benchmark of kind 'film'"),
        ([good, "--target", engine], 2, "--rate"),
        ([good, "--target", engine, "--rate", "x"], 2, "--rate"),
        ([good, "--target", engine, "--rate", "1", "--arrivals", "bursts"], 2, "gamma:SHAPE"),
        ([good, "--target", engine, "--rate", "1", "--arrivals", "trace:none.txt"], 2, "none.txt"),
        ([good, "--target", engine, "--rate", "1", "--slo", "ttft<1"], 2, "ttft_ms"),
        ([good, "--target", engine, "--rate", "1", "--batch", "3"], 2, "/chat/batch"),
        ([good, "--target", f"{engine}/chat/batch", "--rate", "1"], 2, "--batch N"),
        ([good, "--target", f"{engine}/metrics", "--rate", "1"], 2, "no chat route"),
    ):
        code, message = command(*words, "--out", out)
        assert (code, says in message, out.exists()) == (status, True, False), message


async def test_the_folder_of_a_key_holds_no_key(tmp_path: Path) -> None:
    """It is sent, and written nowhere."""
    async with stub_upstream() as stub:
        file = workload_file(tmp_path, stream=False)
        plan = LoadPlan(rates=[50], concurrency=(), arrivals=parse_process("constant"), max_requests=3)
        url = f"http://127.0.0.1:{stub.port}/chat"
        await run(RunOptions(file, url, tmp_path / "run", plan, api_key="sk-secret"))
        assert stub.requests[-1].headers["authorization"] == "Bearer sk-secret"
    for path in (tmp_path / "run").iterdir():
        assert b"sk-secret" not in path.read_bytes()


async def test_a_full_disk_ends_the_run_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the last request; what was written stays whole."""
    from vision_bench.bench.rundir import RunFolder
    from vision_bench.errors import OperatorError

    keep = RunFolder.keep

    def full(self: RunFolder, record: Any) -> None:
        if record.index == 3:
            raise OperatorError("records.jsonl cannot be written (No space left on device)")
        keep(self, record)

    monkeypatch.setattr(RunFolder, "keep", full)
    async with stub_upstream() as stub:
        with pytest.raises(OperatorError, match="No space left"):
            await run_against(stub, tmp_path, rates=[50], duration_seconds=20)
    assert len(list(read_records(tmp_path / "run", ChatRecord))) == 3


async def test_status_is_told_while_a_step_runs(tmp_path: Path) -> None:
    """Offered, sent, in flight and medians, twice a second."""
    seen = []
    async with stub_upstream(answers(delay_seconds=0.1)) as stub:
        file = workload_file(tmp_path, stream=False)
        plan = LoadPlan(rates=[20], concurrency=(), arrivals=parse_process("constant"), duration_seconds=1.5)
        options = RunOptions(file, f"http://127.0.0.1:{stub.port}/chat", tmp_path / "run", plan)
        await run(
            options, on_status=lambda status: seen.append((status.sent, status.in_flight, dict(status.headline or {})))
        )
    assert len(seen) >= 2 and seen[-1][0] > seen[0][0] > 0
    assert seen[-1][2]["e2e"] > 90


def test_a_text_workload_needs_no_heavy_module(engine: str, tmp_path: Path) -> None:
    """No torch, no tokenizer, nor anything for media or schemas; under 120 MB at its peak."""
    program = r"""
import json, re, sys
from pathlib import Path
from vision_bench.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code
names = {"torch", "transformers", "numpy", "av", "httpx", "pydantic", "jsonschema", "fastapi"}
status = Path("/proc/self/status")  # getrusage would tell the peak of whoever started this process
peak_kb = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
print(json.dumps([sorted(names & set(sys.modules)), int(peak_kb[1]) / 1024 if peak_kb else 0]), file=sys.stderr)
"""
    words = [
        "run",
        workload_file(tmp_path),
        "--target",
        engine,
        "--out",
        tmp_path / "run",
        "--rate",
        "50",
        "--requests",
        "50",
    ]
    done = subprocess.run([sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True, check=True)
    heavy, peak_mb = json.loads(done.stderr.strip().splitlines()[-1])
    assert heavy == [] and peak_mb < 120
    assert "goodput/s" in done.stdout


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """By its path."""
    with pytest.raises(InvalidRequest, match="no run folder"):
        summarise_folder(tmp_path)


def test_a_search_for_the_knee_goes_on_after_it_was_cut_off(engine: str, tmp_path: Path, command: Any) -> None:
    """Its steps follow from one another; a step that was cut off is run again; the summary says what was found."""
    out = tmp_path / "run"
    words = (
        workload_file(tmp_path), "--target", engine, "--out", out, "--sweep", "--rate", "16", "--requests", "24",
        "--sweep-steps", "2", "--arrivals", "constant",
    )  # fmt: skip
    code, summary = command(*words)
    assert code == 0 and summary["sweep"]["ended_because"] == "2 steps were made"
    sweep = Sweep(first_rate=16, max_steps=2)
    assert summary["sweep"] == knee(sweep, read_points(summary["steps"], sweep.target))
    jsonschema.validate(summary, SUMMARY_SCHEMA)

    lines = (out / "steps.jsonl").read_bytes().splitlines(keepends=True)
    last = max(index for index, line in enumerate(lines) if b'"event":"end"' in line)
    (out / "steps.jsonl").write_bytes(b"".join(lines[:last]))
    assert not summarise_folder(out)["is_complete"]

    code, again = command(*words, "--resume")
    assert code == 0 and again["is_complete"]
    assert [step["step"] for step in again["steps"]] == [1, 3]
    assert again["steps"][0] == summary["steps"][0]
    code, message = command(*words[:-3], "3", *words[-2:], "--resume")
    assert code == 2 and "its plan differs" in message


async def test_a_client_is_calibrated_against_declared_times(tmp_path: Path) -> None:
    """Every request is known to the engine, counts agree, what was true is near what was declared; the manifest and
    the summary keep it, and a run that is resumed keeps the first one.
    """
    calibrations = []

    async def short() -> Any:
        calibrations.append(await calibrate(rate=20, requests=12))
        return calibrations[-1]

    async with stub_upstream() as stub:
        file = workload_file(tmp_path, stream=False)
        plan = LoadPlan(rates=[20], concurrency=(), arrivals=parse_process("constant"), max_requests=5)
        options = RunOptions(file, f"http://127.0.0.1:{stub.port}/v1", tmp_path / "run", plan)
        summary = await run(options, calibrate=short)
        again = await run(replace(options, is_resumed=True), calibrate=short)
    (told,) = calibrations
    assert (told["requests"], told["ok"], told["seen_by_server"], told["tokens_agree"]) == (12, 12, 12, True)
    assert told["ttft_ms"]["true_p50"] >= 50 and told["ttft_ms"]["p50"] >= 0 and told["ttft_ms"]["p99"] is None
    assert summary["calibration"] == again["calibration"] == told
    jsonschema.validate(summary, SUMMARY_SCHEMA)


async def test_live_cameras_tell_how_fresh_their_answers_are(tmp_path: Path) -> None:
    """A server of 200 ms behind frames every 60 ms: frames are dropped, which is no failure; every frame is on record,
    the answers are older than a period, and no camera is sustained.
    """
    async with stub_upstream(answers(delay_seconds=0.2)) as stub:
        summary = await run_against(stub, tmp_path, cameras=[2], period_ms=60, duration_seconds=1.5)
    (step,) = summary["steps"]
    frames, live = step["live"]["frames"], step["live"]
    assert frames["due"] == step["requests"]["due"] == 50 and frames["failed"] == step["requests"]["failed"] == 0
    assert frames["answered"] + frames["dropped"] == 50 and frames["dropped"] >= 20
    assert frames["late"] == frames["answered"] and live["age_at_use_ms"]["p50"] >= 200
    assert live["age_of_information_ms"]["mean"] >= 200 and not live["is_sustained"]
    assert step["verdict"] in ("SATURATED", "CLIENT-LIMITED") and summary["live"]["cameras"] is None
    records = list(read_records(tmp_path / "run", ChatRecord))
    assert sorted({record.camera for record in records if record.outcome == "ok"}) == [0, 1]
    jsonschema.validate(summary, SUMMARY_SCHEMA)

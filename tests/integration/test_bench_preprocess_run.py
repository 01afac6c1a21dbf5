"""``vision-bench run`` of a preprocess workload, from its command line to its folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.preprocess_cases import QWEN3_VIDEO

from vision_bench.bench.preprocess.interpreters import VARIABLE
from vision_bench.bench.preprocess.record import PreprocessRecord
from vision_bench.bench.rundir import read_manifest, read_records, read_steps
from vision_bench.bench.summary import summarise_folder
from vision_bench.cli.main import main

SUMMARY_SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "run-summary-preprocess.schema.json").read_bytes())

STAND_IN = """#!{python}
import json, sys, time
lines = iter(sys.stdin)
job = json.loads(next(lines))
digest = "of " + job["arm"] if {differs} else "of either"
print(json.dumps({{"digests": [digest], "versions": {{"arm": job["arm"]}}}}), flush=True)
for line in lines:
    time.sleep(0.05 if job["arm"] == "stock" else 0.005)
    print(json.dumps({{"work_ns": 1_000_000}}), flush=True)
"""
"""In place of a Python with transformers: workers whose times are known."""


def workload(folder: Path, **changes: Any) -> Path:
    """A workload file of tiny clips."""
    values = {"name": "tiny", "kind": "preprocess", "frames": 2, "width": 64, "height": 64} | changes
    spec = QWEN3_VIDEO | {"cap_pixels_per_frame": False}
    (folder / "spec.json").write_text(json.dumps(spec))
    path = folder / "tiny.toml"
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in (values | {"spec": "spec.json"}).items()]
    path.write_text("".join(lines))
    return path


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *, differs: bool = False) -> None:
    """Have the run take its workers from ``STAND_IN``."""
    python = folder / "python"
    python.write_text(STAND_IN.format(python=sys.executable, differs=differs))
    python.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(python))


def execute(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any]:
    """Run the verb; gives the exit status and what --json printed, or the message."""
    with pytest.raises(SystemExit) as stopped:
        main(["run", *map(str, words), "--json"])
    printed = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, json.loads(printed.out) if printed.out else printed.err


def test_both_arms_under_one_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step runs with either arm and each number of workers; the slow arm's queue is in its times, not in the
    other's; no target is asked for.
    """
    stand_in(tmp_path, monkeypatch)
    out = tmp_path / "run"
    load = ("--rate", "80", "--requests", "40", "--arrivals", "constant", "--out", out)
    code, summary = execute(capsys, workload(tmp_path, arm="both", workers=[1, 2]), *load)
    assert code == 0 and summary["target"] == "local:"
    named = [(step["workers"], step["arm"]) for step in summary["steps"]]
    assert named == [(1, "stock"), (1, "ours"), (2, "stock"), (2, "ours")]
    slow, fast, slow_of_two, _ = summary["steps"]
    assert [step["requests"]["ok"] for step in summary["steps"]] == [40] * 4
    assert slow["name"] == "rate 80, arm stock, workers 1"
    # The middle one of 40 comes 0.25 s into the step and is done after 20 clips of at least 0.05 s.
    assert slow["response_ms"]["p50"] > 600 and slow["queue_ms"]["p50"] > 500
    assert max(fast["response_ms"]["p50"], slow_of_two["response_ms"]["p50"]) < slow["response_ms"]["p50"]
    assert slow["utilisation"] >= 4 and slow_of_two["utilisation"] >= 2
    assert slow["work_ms"]["p50"] == 1.0 and slow["handover_ms"]["p50"] >= 48
    jsonschema.validate(summary, SUMMARY_SCHEMA)
    assert summary == summarise_folder(out)
    manifest = read_manifest(out)
    assert manifest["server"]["equivalence"]["against"] == "stock"
    assert manifest["server"]["arms"] == {"stock": {"arm": "stock"}, "ours": {"arm": "ours"}}
    assert [log.begin["variant"]["arm"] for log in read_steps(out)] == ["stock", "ours", "stock", "ours"]
    page = (out / "report.html").read_text()
    assert "Response, p90" in page and "stock, 2 workers" in page and "backlog, 1/s" in page
    workers = {(record.step, record.worker) for record in read_records(out, PreprocessRecord)}
    assert workers == {(1, 0), (2, 0), (3, 0), (3, 1), (4, 0), (4, 1)}


def test_no_time_is_taken_where_a_byte_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 5, and no folder."""
    stand_in(tmp_path, monkeypatch, differs=True)
    code, message = execute(capsys, workload(tmp_path, arm="both"), "--rate", "1", "--out", tmp_path / "run")
    assert code == 5 and "is not equal" in message
    assert not (tmp_path / "run").exists()


def test_without_a_stock_processor_the_stock_arm_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 4; nothing else stands in for it."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("VISION_BENCH_VLLM_DIR", str(tmp_path))
    code, message = execute(capsys, workload(tmp_path, arm="stock"), "--rate", "1", "--out", tmp_path / "run")
    assert code == 4 and "python tests/vllm/environment.py" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rate", "1", "--target", "http://127.0.0.1:1"), "leave --target out"),
        (("--rate", "1", "--slo", "e2e_ms<1"), "--slo"),
        (("--rate", "1", "--batch", "2"), "--batch"),
        (("--cameras", "2", "--period-ms", "100"), "--cameras"),
    ],
)
def test_options_of_a_server_are_refused(
    words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2; this kind runs on this machine."""
    code, told = execute(capsys, workload(tmp_path, arm="ours"), "--out", tmp_path / "run", *words)
    assert code == 2 and message in told


def test_ours_alone_is_held_to_the_oracle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real worker of this Python; what it is equal to is named, and is not called stock."""
    load = ("--rate", "5", "--duration", "2", "--arrivals", "constant", "--warmup", "2", "--out", tmp_path / "run")
    code, summary = execute(capsys, workload(tmp_path, arm="ours"), *load)
    (step,) = summary["steps"]
    assert code == 0 and step["requests"]["ok"] == 10 and (step["arm"], step["workers"]) == ("ours", 1)
    assert step["name"] == "rate 5"
    assert 0 < step["work_ms"]["p50"] <= step["service_ms"]["p50"] <= step["response_ms"]["max"]
    server = read_manifest(tmp_path / "run")["server"]
    assert server["equivalence"]["level"] == "E0" and "NumPy" in server["equivalence"]["against"]
    jsonschema.validate(summary, SUMMARY_SCHEMA)

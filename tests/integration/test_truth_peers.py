"""Other tools in the benchmark of the benchmark: their result files, what a run of one is, the tables with them."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.environments import NotAvailable, ensure
from benchmarks.truth import bar, peer_environments, peer_runs, table, traps, tree
from benchmarks.truth.peers import PEERS, Load, Peer, Program, Told, write_tokenizer

SAMPLES = Path(__file__).resolve().parents[1] / "golden" / "peer_results"

CLIENT = """
import json, os, subprocess, sys, time, urllib.request
url, count = sys.argv[1], int(sys.argv[2])
subprocess.run([sys.executable, "-c", "import time; time.sleep(1)"], check=True)
for number in range(count):
    body = json.dumps({"model": "qwen", "stream": True}).encode()
    urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", body)).read()
open("result.json", "w").write(json.dumps({"ok": count}))
"""


def told(**values: Any) -> Told:
    """What a tool says, of ten requests unless told otherwise."""
    usual: dict[str, Any] = dict.fromkeys(Told.__dataclass_fields__)
    return Told(**(usual | {"ok": 10, "failed": 0, "ttft_p50_ms": 5.5} | values))


def stand_in(script: str) -> Peer:
    """A tool that is a script of ours."""

    def command(program: Program, url: str, load: Load, folder: Path) -> list[str]:
        return [str(program.path), "-c", script, url, str(load.requests)]

    def read(folder: Path) -> Told:
        return told(ok=json.loads((folder / "result.json").read_text("utf-8"))["ok"])

    return Peer("stand-in", command, read)


PYTHON = Program("stand-in", "1", Path(sys.executable))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aiperf", (200, 0, 19.275, 52.8728, 4.9982, 367.4326)),
        ("guidellm", (200, 0, 19.3568, 61.8827, 4.9909, 393.3876)),
        ("vllm", (200, 0, 19.278, 53.5682, 4.9985, 368.3069)),
    ],
)
def test_each_tools_own_numbers_are_found_in_the_file_it_wrote(name: str, expected: tuple[Any, ...]) -> None:
    """Counts, rate, TTFT, TPOT and latency of a file that the real tool wrote, in ms and requests a second."""
    said = PEERS[name].read(SAMPLES / name)
    assert (said.ok, said.failed) == expected[:2]
    numbers = (said.rate, said.ttft_p50_ms, said.tpot_p50_ms, said.latency_p50_ms)
    assert numbers == pytest.approx(expected[2:], rel=1e-4)
    assert said.ttft_p99_ms is not None and said.ttft_p50_ms is not None and said.ttft_p99_ms > said.ttft_p50_ms
    assert (said.gap_p99_ms is None) == (name == "guidellm"), "GuideLLM keeps no gaps"


def test_a_tool_is_told_the_load_that_is_measured(tmp_path: Path) -> None:
    """Rate, count, cap, address and output length are in the line that starts it; the data set has a line a request."""
    for name, peer in PEERS.items():
        folder = tmp_path / name
        folder.mkdir()
        command = peer.command(Program(name, "1", Path(name)), "http://127.0.0.1:9", Load(50, 2, cap=32), folder)
        text = " ".join(command)
        assert "50" in text and "http://127.0.0.1:9" in text and "32" in text and "100" in text, text
        lines = (folder / "lines.jsonl").read_text("utf-8").splitlines()
        assert len(lines) == 100 and len(set(lines)) == 100
        assert "64" in text or json.loads(lines[0])["output_tokens_count"] == 64


def test_the_tokenizer_knows_every_byte(tmp_path: Path) -> None:
    """256 letters, each once, and an end: no text has a letter that it lacks."""
    vocabulary = json.loads((write_tokenizer(tmp_path) / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(257)) and all(
        len(word) == 1 for word in vocabulary if word != "<end>"
    )


def test_the_image_makes_a_body_of_164_mb() -> None:
    """Noise that no packing makes smaller, with a PNG's beginning."""
    head, _, data = peer_runs.noise_image().partition(",")
    assert head == "data:image/png;base64" and 1_630_000 < len(data) < 1_650_000
    assert base64.b64decode(data).startswith(b"\x89PNG\r\n\x1a\n")


def test_a_program_and_its_children_are_counted_together(tmp_path: Path) -> None:
    """CPU time of the child is in the sum, both are seen at once, memory is theirs."""
    burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ntime.sleep(2.5)"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    taken = tree.watch([sys.executable, "-c", script], {}, tmp_path, 60)
    assert taken.exit_status == 0 and taken.processes >= 2
    assert taken.cpu_seconds >= 0.3 and taken.peak_pss_bytes > 1_000_000
    times = [moment for moment, _ in taken.samples]
    spent = taken.cpu_between(times[0], times[-1])
    assert spent is not None and 0 < spent <= taken.cpu_seconds
    assert taken.cpu_between(times[0] - 1, times[-1]) is None


def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """Behind the limit there is no exit status, and nothing of it runs on."""
    taken = tree.watch([sys.executable, "-c", "import time; time.sleep(600)"], {}, tmp_path, 0.5)
    assert taken.exit_status is None


def test_a_run_of_a_tool_has_its_numbers_beside_the_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Error is told less true; every request and every connection that it opened is counted, and none of ours."""
    monkeypatch.setitem(PEERS, "stand-in", stand_in(CLIENT))
    ran = peer_runs.run(PYTHON, Load(5, 2), tmp_path / "run", "--ttft-ms", 5, "--tokens", 2)
    cell = ran.as_cell()
    assert (cell["due"], cell["seen_by_server"], cell["accounted_for"], cell["connections"]) == (10, 10, 10, 10)
    ttft = cell["ttft_ms"]
    assert ttft["p50"] == 5.5 and ttft["error_p50"] == pytest.approx(5.5 - ttft["true_p50"], abs=1e-3)
    assert ttft["error_p99"] is None and cell["cpu_ms_per_request_whole"] > 0


def test_a_tool_without_a_result_is_named_and_the_others_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cannot be installed, one falls over: both with the reason, and the third has its cell."""

    def program(name: str, say: object) -> Program:
        if name == "absent":
            raise NotAvailable("no such release")
        return Program(name, "1", Path(sys.executable))

    monkeypatch.setattr(peer_environments, "program", program)
    for name, script in (("absent", ""), ("broken", "raise SystemExit('out of luck')"), ("stand-in", CLIENT)):
        monkeypatch.setitem(PEERS, name, stand_in(script)._replace(title=name))
    names = ("absent", "broken", "stand-in")
    result = peer_runs.measure(names, [5.0], 1, tmp_path, lambda words: None, with_traps=False)
    assert [(one["tool"], one["what"]) for one in result["failed"]] == [("absent", "everything"), ("broken", "5/s")]
    assert result["failed"][0]["reason"] == "no such release" and "out of luck" in result["failed"][1]["reason"]
    assert [cell["tool"] for cell in result["cells"]] == ["stand-in"]


def test_an_environment_that_pip_cannot_make_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip's words are in the reason, and the half-made environment is not taken for a whole one."""
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        is_pip = "pip" in command
        return subprocess.CompletedProcess(command, int(is_pip), "", "no matching distribution" if is_pip else "")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", run)
    for _ in range(2):
        with pytest.raises(NotAvailable, match="no matching distribution"):
            ensure("tool", ["tool==1"], lambda words: None)
    assert [command[-1] for command in ran] == [str(tmp_path / "vision-bench" / "tool"), "tool==1"] * 2


def result_with_peers() -> dict[str, Any]:
    """A result of one rate and one trap, ours and two others'."""
    pair = {"count": 400, "error_p50": 0.5, "error_p99": 1.25}
    cell = {
        "server": "lean", "rate": 100.0, "arrivals": "constant", "due": 400, "seen_by_server": 400, "ttft_ms": pair,
        "tpot_ms": {"error_p50": 0.001}, "gap_cv": 0.01, "achieved_over_offered": 1.0, "cpu_ms_per_request": 2.0,
        "cpu_ms_per_request_whole": 3.0, "peak_pss_mb": 30.0, "connections": 12, "connections_whole": 39,
        "verdict": "STABLE",
    }  # fmt: skip
    theirs = {
        **cell, "tool": "A", "accounted_for": 390, "processes": 7, "cpu_ms_per_request": 9.5, "gap_cv": 0.35,
        "ttft_ms": {"count": 390, "error_p50": -1.66, "error_p99": 16.2}, "connections": 46, "reported_rate": 99.0,
    }  # fmt: skip
    said = told(ttft_p50_ms=2.83, tpot_p50_ms=5.57).rounded()
    return {
        "machine": {"processors": 2, "system": "Linux", "python": "3.11"}, "when": "2026-01-01T00:00:00Z",
        "load_before": 0.1, "load_after": 0.2, "floor": [], "cells": [cell], "wire": None, "ceiling": None,
        "traps": [{"trap": traps.ROLE, "truth": "", "reported": {}, "checks": {"x": True}, "is_right": True}],
        "bar": bar.judge([cell], [], peers=[theirs]),
        "peers": {
            "tools": [{"tool": "A", "version": "1"}, {"tool": "B", "version": "2"}], "cells": [theirs],
            "traps": [
                {"trap": traps.ROLE, "tool": "A", "reported": said, "checks": {"TTFT is": False, "y": True}},
            ],
            "failed": [{"tool": "B", "what": "100/s", "reason": "exit status 1\n  boom"}],
        },
    }  # fmt: skip


def test_the_page_has_other_tools_beside_ours() -> None:
    """A row a tool and rate, ours first; a column a tool in the traps; the best of others is this run's."""
    text = "\n".join(table.markdown(result_with_peers()))
    ours, theirs = [line for line in text.splitlines() if "| vision-bench run |" in line or "| A | 1.000" in line][:2]
    assert ours.startswith(
        "| 100 | vision-bench run | 1.000 | 400 / 400 | 0.50 / 1.25 | 0.0010 | 0.01 | 2.0 (3.0) | 30 |"
    )
    assert theirs.startswith("| 100 | A | 1.000 | 390 / 400 | -1.66 / 16.20 |") and theirs.endswith("| 7 | 46 |")
    assert "| not run | **not**" not in text and "| right | **not**: TTFT is; TTFT 2.83 ms, 5.57 ms a token |" in text
    assert "- B, 100/s: exit status 1 boom" in text
    assert "| client CPU a request at 100/s, ms | 2.000 | 4 | 2.5 | A 9.50 | met |" in text
    assert "A -1.66" in text


def test_the_page_without_other_tools_says_nothing_of_them() -> None:
    """A result of before, without the key, and one without tools make the same page."""
    result = result_with_peers() | {"peers": None}
    text = table.markdown(result)
    assert "vision-bench run" not in "\n".join(text)
    del result["peers"]
    assert table.markdown(result) == text

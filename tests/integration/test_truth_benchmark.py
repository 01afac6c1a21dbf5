"""The benchmark of the benchmark: its server's truth, its comparison, its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.truth import bar, table, wire
from benchmarks.truth.cells import compare, gap_cv, write_workload
from benchmarks.truth.processes import lean, run_client


def test_what_is_reported_stands_beside_what_happened(tmp_path: Path) -> None:
    """Every arrival is known to the server, failures and cuts are counted as it made them, times are near its own."""
    with lean("--tokens", 8, "--itl-ms", 10, "--fail-every", 10, "--cut-every", 15) as server:
        client = run_client(
            write_workload(tmp_path), server.url, tmp_path / "run",
            "--rate", 30, "--arrivals", "constant", "--duration", 2, "--allow-failures",
        )  # fmt: skip
        truth = server.truth()
    cell = compare(client, truth)
    assert cell["due"] == cell["seen_by_server"] == len(truth) == 60
    declared = [line["outcome"] for line in truth.values()]
    assert client.step["requests"]["outcomes"] == {name: declared.count(name) for name in set(declared)}
    assert declared.count("http_error") == 6 and declared.count("truncated") == 2
    assert cell["ttft_ms"]["true_p50"] >= 49 and cell["ttft_ms"]["error_p50"] >= 0
    assert cell["tpot_ms"]["true_p50"] == pytest.approx(10, abs=5) and cell["ttft_ms"]["error_p99"] is None
    assert cell["peak_pss_mb"] > 5 and client.cpu_seconds > 0


def test_a_misread_wire_case_is_told() -> None:
    """The first token in another chunk, another text, another outcome: each with both readings."""
    expect = {"outcome": "ok", "text": "ab", "completion_tokens": 2, "first_any": 1, "first_text": 1}
    record: dict[str, Any] = {
        "outcome": "ok", "text": "ab", "completion_tokens": 2, "k_ns": [205], "k1_text_ns": 205,
    }  # fmt: skip
    assert wire.judge(expect, record, [100, 200, 300]) == []
    assert wire.judge(expect, record | {"k_ns": [105]}, [100, 200, 300]) == ["first_any: 0, not 1"]
    assert wire.judge(expect, record | {"text": "a"}, [100, 200, 300]) == ["text: 'a', not 'ab'"]
    assert wire.judge({"outcome": "error"}, record, [100]) == ["outcome: 'ok', not 'error'"]


def test_gaps_between_arrivals() -> None:
    """Equal ones vary by nothing; one gap is no variation."""
    assert gap_cv([0, 10, 20, 30]) == 0.0
    assert gap_cv([0, 10]) is None


def test_the_tables_of_the_page_are_filled_between_its_marks(tmp_path: Path) -> None:
    """What stands around them stays; a bar that was missed is said to be; a page without marks is refused."""
    pair = {"count": 400, "error_p50": 0.5, "error_p99": 3.25}
    cell = {
        "server": "lean", "rate": 100.0, "arrivals": "constant", "due": 400, "seen_by_server": 400, "ttft_ms": pair,
        "tpot_ms": {"error_p50": 0.001}, "gap_cv": 0.01, "achieved_over_offered": 1.0, "cpu_ms_per_request": 2.0,
        "peak_pss_mb": 30.0, "connections": 39, "verdict": "STABLE",
    }  # fmt: skip
    result = {
        "machine": {"processors": 2, "system": "Linux", "python": "3.11"}, "when": "2026-01-01T00:00:00Z",
        "load_before": 0.1, "load_after": 0.2, "floor": [], "cells": [cell], "traps": [], "wire": None, "ceiling": None,
        "bar": bar.judge([cell], []),
    }  # fmt: skip
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nearlier figures\n{table.END}\nafter\n", "utf-8")
    table.fill(result, page)
    text = page.read_text("utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "earlier figures" not in text
    assert "| TTFT error p99 at 100/s, ms | 3.250 | 2.5 | 1.5 | vllm bench +4.9 | **not met** |" in text
    assert "| TTFT error p50 at 100/s, ms | 0.500 | 1.2 | 0.6 | vllm bench +1.7 | met |" in text
    table.fill(result, page)
    assert page.read_text("utf-8") == text
    page.write_text("no marks", "utf-8")
    with pytest.raises(ValueError, match="lacks the marks"):
        table.fill(result, page)

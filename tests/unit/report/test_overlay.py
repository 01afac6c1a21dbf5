"""report.overlay: several runs on one page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bench.run_folders import good, write_run
from tests.unit.report.page_reader import Reader
from tests.unit.report.test_run_page import _short_script, figures  # noqa: F401 - a fixture

from vision_bench.errors import InvalidRequest
from vision_bench.report.overlay import write_overlay

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def of_model(name: str) -> Callable[[Any], None]:
    def change(manifest: Any) -> None:
        manifest["labels"]["model"] = name
        manifest["workload"]["values"]["model"] = name
        manifest["workload"]["fingerprint"] = name

    return change


def run(folder: Path, ttft_ms: float, change: Callable[[Any], None] = lambda _: None) -> Path:
    steps = [[good(index, ttft_ms) for index in range(40)] for _ in range(2)]
    return write_run(folder, *steps, change=change)


def test_a_curve_a_run_in_every_figure(tmp_path: Path) -> None:
    """Named by the models, which differ; what differs else is listed."""
    folders = [run(tmp_path / name, 100 + 50 * place, of_model(name)) for place, name in enumerate(("qwen", "gemma"))]
    reader = Reader(write_overlay(folders, made_at=NOW).read_text("utf-8"))
    first, *_ = figures(reader)
    assert [trace["name"] for trace in first["data"]] == ["qwen, p50", "gemma, p50"]
    assert [trace["y"] for trace in first["data"]] == [[100.0, 100.0], [150.0, 150.0]]
    assert "workload, model: qwen against gemma" in reader.text
    assert "rate 10: share of all that was due" in reader.text


def test_runs_of_one_model_are_named_by_their_folders(tmp_path: Path) -> None:
    """And by number, where these are equal, too; the page may lie elsewhere."""
    folders = [run(tmp_path / "x" / "run", 100), run(tmp_path / "y" / "run", 100)]
    page = write_overlay(folders, made_at=NOW, out=tmp_path / "page.html", title="Mine")
    reader = Reader(page.read_text("utf-8"))
    assert figures(reader)[0]["data"][0]["name"] == "1: run, p50"
    assert "Workload, schedules and payloads are the same." in reader.text and "Mine" in reader.text


def test_what_cannot_be_laid_over_is_refused(tmp_path: Path) -> None:
    """Nine runs, another kind, no step."""
    folder = run(tmp_path / "run", 100)
    with pytest.raises(InvalidRequest, match="8 or fewer"):
        write_overlay([folder] * 9, made_at=NOW)
    with pytest.raises(InvalidRequest, match="no run folder"):
        write_overlay([folder, tmp_path], made_at=NOW)

"""Correctness on a run's page."""

from __future__ import annotations

from typing import Any

from vision_bench.report.correctness import correctness_section


def step(name: str, right: int) -> dict[str, Any]:
    share = {"count": 10, "right": right, "share": right / 10, "interval": [0.1, 0.9]}
    facts = {"team": {"scorer": "contains", **share}}
    accuracy = {**share, "clips": 5, "answers": share, "by_sense": {}, "by_fact": facts}
    return {"name": name, "accuracy": accuracy, "response_ms": {"p50": 100.0 * right}, "goodput": 1.0}


def test_every_step_and_every_fact() -> None:
    """Several steps are drawn against their latency; one alone is a table."""
    section = correctness_section({"steps": [step("1/s", 9), step("2/s", 4)], "envelope": None})
    assert section is not None and len(section.figures) == 1
    assert section.figures[0].data[0]["y"] == [0.9, 0.4] and section.figures[0].data[0]["x"] == [900.0, 400.0]
    assert section.tables[1].rows == [["team", "contains", "9 of 10", "4 of 10"]]
    one = correctness_section({"steps": [step("1/s", 9)], "envelope": None})
    assert one is not None and not one.figures


def test_a_stale_choice_is_told_without_labels_too() -> None:
    """And a run with neither has no section."""
    standing = {"chosen": None, "is_used": False, "stale": ["prompt"], "threshold": 0.9, "made_at": "then"}
    section = correctness_section({"steps": [{"name": "1/s", "accuracy": None}], "envelope": standing})
    assert section is not None and section.notes[0].startswith("Envelope STALE (prompt changed since then)")
    assert not section.tables
    assert correctness_section({"steps": [{"name": "1/s"}]}) is None

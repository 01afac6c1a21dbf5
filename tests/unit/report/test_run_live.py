"""report.run_live and the pairs of report.run_stages: sections of loads that not every run has."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.bench.column import column
from vision_bench.report.run_live import live_section
from vision_bench.report.run_stages import stage_section


def step(cameras: int, *, is_sustained: bool) -> dict[str, Any]:
    frames = {"due": 10, "answered": 7, "late": 1, "dropped": 2, "failed": 1}
    live = {
        "cameras": cameras,
        "period_ms": 500.0,
        "deadline_ms": 500.0,
        "drop": "newest",
        "frames": frames,
        "miss_ratio": 0.4,
        "miss_interval": [0.2, 0.6],
        "updates_per_second": 1.2,
        "is_sustained": is_sustained,
        "age_at_use_ms": column([100.0 + place for place in range(40)]),
        "age_of_information_ms": {"mean": 350.0},
    }
    return {"name": f"{cameras} cameras", "round": 0, "live": live}


def test_cameras_have_their_fates_and_ages() -> None:
    """A bar a step that adds up to all frames; ages against the number of cameras, a withheld p95 as a gap."""
    section = live_section([step(1, is_sustained=True), step(4, is_sustained=False)])
    assert section is not None
    fates, ages = section.figures
    assert [sum(trace["y"][0] for trace in fates.data)] == pytest.approx([1.0])
    assert [(trace["name"], trace["y"][0]) for trace in fates.data][:2] == [("on time", 0.6), ("late", 0.1)]
    assert "sustained with 1 cameras" in fates.says
    assert [trace["y"] for trace in ages.data] == [[119.5, 119.5], [None, None]]
    assert section.tables[0].marks == ["ok", "fail"]
    assert "40.0% [20.0%, 60.0%]" in section.tables[0].rows[0]


def test_a_load_without_cameras_has_no_such_section() -> None:
    """Nor one whose summary is older than cameras."""
    assert live_section([{"live": None}, {}]) is None


def test_pairs_stand_below_the_stages() -> None:
    """Both differences, with their counts; one that was not measured is left out."""
    stage = {"stage": "upload", "source": "client", "ms": {"mean": 1.0, "p50": 1.0, "p95": 1.0}, "server": None}
    steps = [
        {"name": "rate 1", "round": 0, "step": 1, "arrivals": "constant", "duration_seconds": 1.0, "stages": [stage]}
        | {"verdict": "STABLE", "in_flight": {"mean": 1.0}}
    ]
    pairs = {"media_less_text_ms": column([40.0 + place for place in range(12)]), "uncached_less_cached_ms": None}
    section = stage_section(steps, pairs)
    assert section is not None
    assert [row[0] for row in section.tables[1].rows] == ["media less equal text"]
    assert section.tables[1].rows[0][1] == 12

"""report.run_table: the lines below a run's table."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vision_bench.bench.column import column
from vision_bench.report.run_table import calibration_line, live_line, mean_to_max


def test_how_fresh_answers_are_is_one_line() -> None:
    """Missed frames by cause, age at use with its count, age of information; what is not known is n/a."""
    live: dict[str, Any] = {
        "missed": 7, "deadline_ms": 500.0, "frames": {"due": 40, "late": 3, "dropped": 4, "failed": 0},
        "age_at_use_ms": {"count": 36, "p50": 200.0, "p95": None, "p99": None},
        "age_of_information_ms": {"mean": None},
    }  # fmt: skip
    assert live_line(live) == (
        "7 of 40 frames missed within 500 ms (3 late, 4 dropped, 0 failed); age at use 200.0 / - / - (36) ms; "
        "age of information n/a in the mean"
    )
    assert "age of information 321 ms" in live_line(live | {"age_of_information_ms": {"mean": 321.4}})


def test_the_clients_own_error_is_one_line() -> None:
    """With its sign; a percentile that the sample does not carry is a dash."""
    error = {"p50": 0.512, "p99": None}
    told = {
        "rate": 50.0,
        "ttft_ms": error,
        "tpot_ms": {"p50": -0.001, "p99": 0.1},
        "e2e_ms": error,
        "verdict": "STABLE",
    }
    assert calibration_line(told | {"ok": 400, "requests": 400}) == (
        "Calibration at 50/s, reported less true, p50 / p99: TTFT +0.51 / - ms; TPOT -0.00 / +0.10 ms; "
        "e2e +0.51 / - ms (STABLE; 400 of 400 answered)"
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "n/a (0 samples)"),
        ([300.0, 302.0], "301 to 302 (2)"),
        ([300.0, 301.0, 302.0, 303.0, 304.0, math.inf], "302 to never (6)"),
        ([300.0, math.inf], "- to never (2)"),
    ],
)
def test_what_one_session_never_had_has_a_median_and_no_mean(values: list[float], said: str) -> None:
    """A session that ended before its first chunk is in the count; it takes the mean and the largest away."""
    assert mean_to_max(column(values)) == said

"""The envelope study as a page and as a table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bench.envelope.made_up_rows import row

from vision_bench.bench.envelope.choose import choose, flags
from vision_bench.report.envelope import print_study, render_study

SENSE = {"facts": 9, "right": 9, "right_in_control": 0, "lost": 9, "gained": 0, "p": 0.004}


def study(threshold: float, **more: Any) -> dict[str, Any]:
    rows = [row(0.6, tokens=10, height=120, fps=1.0), row(0.95, tokens=20, height=240, fps=1.0)]
    return {
        "workload": "a <b> & c", "threshold": threshold, "is_sure": False, "items": 10, "rounds": 1, "concurrency": 1,
        "target": "http://x", "rows": rows, "flags": flags(rows), "choice": {"chosen": choose(rows, threshold)},
        "controls": [
            {"control": "blackout", "verdict": "PASS", "reason": "9 of 9 were lost", "senses": {"picture": SENSE}}
        ],
    } | more  # fmt: skip


def test_the_page_holds_choice_table_and_controls() -> None:
    """With the user's text escaped."""
    page = render_study(study(0.9), made_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert "height 240, fps 1.0 is the smallest that reaches 90%" in page
    assert "a &lt;b&gt; &amp; c" in page and "a <b>" not in page
    assert "9 of 9 were lost" in page and "begins at 85.0%" in page


def test_none_that_reaches_the_threshold_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    """On the page and in the terminal; a study without controls is one too."""
    page = render_study(study(0.99, controls=[]), made_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert "no envelope reaches 99%" in page and "No control was run." in page
    print_study(study(0.99), Path("out"))
    printed = capsys.readouterr().out
    assert "no envelope reaches 99%" in printed and "control blackout: PASS" in printed

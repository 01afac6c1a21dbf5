"""report.run_receipts: the table and figure of receipts."""

from __future__ import annotations

from typing import Any

from vision_bench.bench.column import column
from vision_bench.report.run_receipts import receipt_section


def row(stage: str, **more: Any) -> dict[str, Any]:
    empty = {"source": "unknown", "clocks": [], "ms": None, "low_ms": None, "high_ms": None, "offset": None}
    return {"stage": stage, **empty, "problems": {}, **more}


def step(name: str) -> dict[str, Any]:
    values = [float(place) for place in range(20)]
    offset = {"behind": "camera", "ahead": "server-1", "offset_ms": 5000.25, "bound_ms": column([0.5] * 20)}
    ranged = {"low_ms": column(values), "high_ms": column([value + 2 for value in values]), "offset": offset}
    receipts = {
        "answers": 20,
        "stages": [
            row("capture", source="receipt: the camera's clock", clocks=["camera"], ms=column(values)),
            row("transport", source="across clocks", clocks=["camera", "server-1"], **ranged),
            row("decode", problems={"no_stamp": 20}),
        ],
        "totals": [row("workflow", source="client", clocks=["run"], ms=column(values))],
        "frames": {"per_answer": column([1.0] * 20), "age_ms": column(values), "distinct_newest": 18},
        "payload_bytes": column([900.0] * 20),
        "visual_tokens": None,
        "cache": {"told": 0, "hits": None, "cached_input_tokens": None},
    }
    return {"name": name, "round": 0, "receipts": receipts}


def test_exact_ranged_and_unknown_stages() -> None:
    """A number, both ends with the offset and its bound, and "unknown" with the count of answers that told nothing."""
    section = receipt_section([step("1 at once")])
    assert section is not None
    frames, stages = section.tables
    by_stage = {each[1]: each for each in stages.rows}
    assert by_stage["capture"][4] == 9.5
    assert by_stage["transport"][4] == "9.50 to 11.50"
    assert by_stage["transport"][6] == "server-1 ahead by 5000.250 ± 0.500 (p50)"
    assert by_stage["decode"][4:] == ["unknown", "unknown", "–", "no reading 20 of 20"]
    assert "workflow" in by_stage
    assert frames.rows[0][1:6] == [20, 1.0, 9.5, "– (20 samples, 72 needed)", 18]
    assert frames.rows[0][7:] == ["unknown", 0, "unknown", "unknown"]


def test_the_figure_names_what_is_unknown() -> None:
    """Bars of what is known, ranges in two parts; the first and the last of several steps."""
    section = receipt_section([step("a"), step("b"), step("c")])
    assert section is not None
    assert [figure.layout["title"]["text"] for figure in section.figures] == ["a", "c"]
    least, more = section.figures[0].data
    assert least["y"] == ["capture", "transport", "newest frame's age"]
    assert more["x"] == [0.0, 2.0, 0.0]
    assert more["text"] == ["9.50 ms", "9.50 to 11.50 ms", "9.50 ms"]
    assert "Unknown: decode." in section.figures[0].says


def test_a_run_without_receipts_has_no_such_section() -> None:
    """Nor one whose summary is older than receipts."""
    assert receipt_section([{"receipts": None}, {}]) is None

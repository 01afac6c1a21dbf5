"""A comparison as a page: each ratio with its interval beside the margin, and every number in a table."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from vision_bench.report.compare_words import caveats, correctness_line, head_line, p_values, ratio
from vision_bench.report.figures import axis
from vision_bench.report.section import Cell, Figure, Section, Table, Tile
from vision_bench.report.shell import render_page, write_page

Json = dict[str, Any]

COLOURS = {"FASTER": "var(--ok)", "SLOWER": "var(--fail)", "EQUIVALENT": "var(--accent)", "INCONCLUSIVE": "var(--soft)"}
MARKERS = {"FASTER": "triangle-left", "SLOWER": "triangle-right", "EQUIVALENT": "circle", "INCONCLUSIVE": "circle-open"}
ROW_MARKS = {"FASTER": "ok", "SLOWER": "fail", "EQUIVALENT": "", "INCONCLUSIVE": "warn"}


def write_compare_page(path: Path, found: Json, *, made_at: datetime, title: str | None = None) -> None:
    """Draw what ``bench.compare.compare`` found.

    Raises:
        InvalidSettings: the page cannot be written.
    """
    a, b = found["a"], found["b"]
    html = render_page(
        title or f"{b['workload']['name']}: B against A",
        compare_sections(found),
        made_at=made_at,
        facts=[
            f"A: {a['model']} at {a['target']}, {a['started_at']}",
            f"B: {b['model']} at {b['target']}, {b['started_at']}",
            f"media {a['media']}",
            f"region {a['region'] or 'not told'}",
            f"equivalent within {found['margin']:.1%}",
        ],
        tiles=[
            Tile(count, name, {"SLOWER": "bad", "FASTER": "good"}.get(name, "") if count else "")
            for name, count in found["verdicts"].items()
        ],
    )
    write_page(path, html)


def compare_sections(found: Json) -> list[Section]:
    """What to keep in mind, each step, correctness."""
    mind = Section("How to read this", text=head_line(found), notes=caveats(found))
    steps = [_step(found, name) for name in found["steps"]]
    return [mind, *steps, Section("Correctness", text=correctness_line(found))]


def _step(found: Json, name: str) -> Section:
    rows = [row for row in found["rows"] if row["step"] == name]
    cells: list[list[Cell]] = [
        [
            row["metric"],
            row["percentile"],
            row["a"],
            row["b"],
            ratio(row),
            row["verdict"],
            p_values(row),
            row["reason"],
            " / ".join(map(str, row["count"])),
            row["block"],
        ]
        for row in rows
    ]
    head = ["number", "", "A, ms", "B, ms", "B / A, 95 %", "verdict", "p differs / outside", "reason", "count", "block"]
    figure = _forest(rows, found["margin"], name)
    of_a, of_b = rows[0]["step_verdicts"]
    return Section(
        name,
        text=f"Verdict on the load: {of_a} in A, {of_b} in B.",
        figures=[figure] if figure else [],
        tables=[Table(head, cells, marks=[ROW_MARKS[row["verdict"]] for row in rows])],
    )


def _forest(rows: list[Json], margin: float, name: str) -> Figure | None:
    drawn = [row for row in rows if row["ratio"] is not None and None not in row["interval"]]
    if not drawn:
        return None
    labels = [f"{row['metric']} {row['percentile']}" for row in drawn]
    traces = []
    for verdict, tint in COLOURS.items():
        places = [place for place, row in enumerate(drawn) if row["verdict"] == verdict]
        if not places:
            continue
        ratios = [drawn[place]["ratio"] for place in places]
        ends = [drawn[place]["interval"] for place in places]
        error = {
            "type": "data",
            "symmetric": False,
            "array": [high - value for value, (_, high) in zip(ratios, ends, strict=True)],
            "arrayminus": [value - low for value, (low, _) in zip(ratios, ends, strict=True)],
            "color": tint,
        }
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": verdict,
                "x": ratios,
                "y": [labels[place] for place in places],
                "error_x": error,
                "marker": {"color": tint, "symbol": MARKERS[verdict], "size": 10},
                "text": [f"{labels[place]}: {ratio(drawn[place])} {verdict}" for place in places],
                "hovertemplate": "%{text}<extra></extra>",
            }
        )
    band = {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": 1 / (1 + margin),
        "x1": 1 + margin,
        "y0": 0,
        "y1": 1,
        "fillcolor": "var(--accent)",
        "opacity": 0.1,
        "line": {"width": 0},
    }
    one = {"type": "line", "xref": "x", "yref": "paper", "x0": 1, "x1": 1, "y0": 0, "y1": 1}
    layout = {
        "xaxis": axis("B / A: left of 1 is faster; the band is the margin", is_log=True, tickformat=".3~g"),
        "yaxis": {"autorange": "reversed", "categoryorder": "array", "categoryarray": labels},
        "shapes": [band, one | {"line": {"color": "var(--soft)", "width": 1, "dash": "dot"}}],
    }
    counts = ", ".join(f"{trace['name']} {len(trace['x'])}" for trace in traces)
    return Figure(traces, layout, f"{name}: ratios of B to A with 95 % intervals; {counts}.", 130 + 30 * len(drawn))

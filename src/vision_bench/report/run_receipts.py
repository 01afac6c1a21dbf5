"""Answers about live streams: every stage from the camera to the checked answer, with its clock, exact or a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vision_bench.report.figures import axis, colour, spans
from vision_bench.report.run_words import cell, step_name
from vision_bench.report.section import Cell, Figure, Section, Table
from vision_bench.report.shell import shown

Json = dict[str, Any]

MOST_FIGURES = 2
HEAD = ("step", "stage", "told by", "clocks", "p50 ms", "p95 ms", "offset, ms", "not known")
AT_LEAST, AT_MOST = colour(0), colour(1)
PROBLEMS = {"no_stamp": "no reading", "no_offset": "no offset", "out_of_order": "out of order"}


def receipt_section(steps: Sequence[Json]) -> Section | None:
    """A figure of the first and the last step, a table of all; None where no answer had a receipt."""
    told = [step for step in steps if step.get("receipts")]
    if not told:
        return None
    rows = [
        _row(step_name(step, steps), row, step["receipts"]["answers"])
        for step in told
        for row in (*step["receipts"]["stages"], *step["receipts"]["totals"])
    ]
    drawn = told if len(told) <= MOST_FIGURES else [told[0], told[-1]]
    return Section(
        "Receipts: from the camera to the answer",
        figures=[_figure(step, steps) for step in drawn],
        tables=[_frames_table(told, steps), Table(HEAD, rows, "Stages, over answers with a receipt")],
        notes=[
            "Within one clock a stage is exact. Across two it is a range, as wide as their offset is unsure; its cells "
            "are the medians of both ends. A stage without readings is unknown, not zero. The age of the "
            "newest frame is how long the gateway had held it when it was chosen."
        ],
        is_folded=len(told) > MOST_FIGURES,
    )


def _row(step: str, row: Json, answers: int) -> list[Cell]:
    problems = ", ".join(f"{PROBLEMS.get(name, name)} {count} of {answers}" for name, count in row["problems"].items())
    return [
        step,
        row["stage"].replace("_", " "),
        row["source"],
        ", ".join(row["clocks"]) or "–",
        _time(row, "p50"),
        _time(row, "p95"),
        _offset(row["offset"]),
        problems,
    ]


def _time(row: Json, name: str) -> Cell:
    if row["ms"] is not None:
        return cell(row["ms"], name)
    if row["low_ms"] is None:
        return "unknown"
    low, high = (cell(row[end], name) for end in ("low_ms", "high_ms"))
    if isinstance(low, float) and isinstance(high, float):
        return f"{shown(low)} to {shown(high)}"
    return low


def _offset(offset: Json | None) -> Cell:
    if offset is None:
        return "–"
    bound = cell(offset["bound_ms"])
    width = f"± {shown(bound)} (p50)" if isinstance(bound, float) else f"± {bound}"
    return f"{offset['ahead']} ahead by {offset['offset_ms']:.3f} {width}"


def _frames_table(told: Sequence[Json], steps: Sequence[Json]) -> Table:
    head = ["step", "answers", "frames each", "newest frame's age p50 ms", "p95 ms", "different newest frames"]
    head += ["bytes p50", "visual tokens p50", "cache told", "cache hits", "cached tokens"]
    rows: list[list[Cell]] = []
    for step in told:
        receipts = step["receipts"]
        frames, cache = receipts["frames"], receipts["cache"]
        rows.append(
            [
                step_name(step, steps),
                receipts["answers"],
                cell(frames["per_answer"]),
                cell(frames["age_ms"]),
                cell(frames["age_ms"], "p95"),
                frames["distinct_newest"],
                *(
                    "unknown" if receipts[key] is None else cell(receipts[key])
                    for key in ("payload_bytes", "visual_tokens")
                ),
                cache["told"],
                "unknown" if cache["hits"] is None else cache["hits"],
                "unknown" if cache["cached_input_tokens"] is None else cache["cached_input_tokens"],
            ]
        )
    return Table(head, rows, "What was looked at")


def _figure(step: Json, steps: Sequence[Json]) -> Figure:
    """Means, each from zero: what lies between stages, as the frame's wait for a question, belongs to none of them."""
    names: list[str] = []
    least: list[float] = []
    most: list[float] = []
    unknown = []
    for row in step["receipts"]["stages"]:
        name = row["stage"].replace("_", " ")
        low = row["ms"] or row["low_ms"]
        high = row["ms"] or row["high_ms"]
        if low is None or low["mean"] is None or high["mean"] is None:
            unknown.append(name)
            continue
        names.append(name)
        least.append(low["mean"])
        most.append(max(0.0, high["mean"] - low["mean"]))
    age = step["receipts"]["frames"]["age_ms"]
    if age["mean"] is not None:  # it passes between the frame's stages and the question's
        at = names.index("request") if "request" in names else len(names)
        names.insert(at, "newest frame's age")
        least.insert(at, age["mean"])
        most.insert(at, 0.0)
    text = [
        f"{shown(low)} ms" if not more else f"{shown(low)} to {shown(low + more)} ms"
        for low, more in zip(least, most, strict=True)
    ]
    traces = [
        spans("exact, or at least", names, [0.0] * len(names), least, colour=AT_LEAST),
        spans("up to", names, least, most, colour=AT_MOST, text=text, textposition="outside", hoverinfo="y+text"),
    ]
    widest = max((low + more for low, more in zip(least, most, strict=True)), default=0.0)
    layout = {
        "title": {"text": step_name(step, steps)},
        "xaxis": axis("ms, mean over answers", range=[0, 1.2 * (widest or 1.0)]),  # room for the words behind the bars
        "yaxis": {"autorange": "reversed", "categoryorder": "array", "categoryarray": names},
        "barmode": "overlay",
    }
    says = f"{step_name(step, steps)}: mean of each stage; between two clocks from its least to its most."
    says += f" Unknown: {', '.join(unknown)}." if unknown else ""
    return Figure(traces, layout, says, height=140 + 26 * len(names))

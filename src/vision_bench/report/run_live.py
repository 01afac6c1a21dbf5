"""Live cameras as a load: how fresh the answers are, and how many cameras are sustained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vision_bench.report.figures import axis, bars, colour, line
from vision_bench.report.run_words import cell, step_name, with_interval
from vision_bench.report.section import Cell, Figure, Section, Table

Json = dict[str, Any]

FATES = ("on time", "late", "dropped", "failed")
TINTS = (colour(2), colour(1), colour(7), "var(--fail)")


def live_section(steps: Sequence[Json]) -> Section | None:
    """What became of each camera's frames; None for a load without cameras."""
    live = [step for step in steps if step.get("live")]
    if not live:
        return None
    head = ["step", "cameras", "period ms", "deadline ms", "drop", *FATES, "missed", "updates/s", "sustained"]
    head += ["age at use p50 ms", "age at use p95 ms", "age of information, mean ms"]
    rows: list[list[Cell]] = [_row(step, steps) for step in live]
    return Section(
        "Live cameras",
        figures=[_fates(live, steps), _ages(live)],
        tables=[Table(head, rows, marks=["ok" if step["live"]["is_sustained"] else "fail" for step in live])],
        notes=["Late frames were answered after their deadline; dropped ones gave way to a newer frame."],
    )


def _row(step: Json, steps: Sequence[Json]) -> list[Cell]:
    live = step["live"]
    frames, interval = live["frames"], live["miss_interval"]
    missed = "n/a" if live["miss_ratio"] is None else f"{live['miss_ratio']:.1%}"
    if interval is not None:
        missed += f" [{interval[0]:.1%}, {interval[1]:.1%}]"
    return [
        step_name(step, steps),
        live["cameras"],
        live["period_ms"],
        live["deadline_ms"],
        live["drop"],
        *(_count(frames, fate) for fate in FATES),
        missed,
        live["updates_per_second"],
        "yes" if live["is_sustained"] else "no",
        with_interval(live["age_at_use_ms"], "p50"),
        with_interval(live["age_at_use_ms"], "p95"),
        live["age_of_information_ms"]["mean"],
    ]


def _fates(live: Sequence[Json], steps: Sequence[Json]) -> Figure:
    names = [step_name(step, steps) for step in live]
    traces = [
        bars(fate, names, [_share(step["live"]["frames"], fate) for step in live], colour=tint)
        for fate, tint in zip(FATES, TINTS, strict=True)
    ]
    layout = {"yaxis": axis("share of frames", tickformat=".0%", range=[0, 1]), "barmode": "stack"}
    sustained = [str(step["live"]["cameras"]) for step in live if step["live"]["is_sustained"]]
    return Figure(
        traces, layout, f"What became of the frames; sustained with {', '.join(sustained) or 'no'} cameras.", 300
    )


def _share(frames: Json, fate: str) -> float | None:
    return _count(frames, fate) / frames["due"] if frames["due"] else None


def _count(frames: Json, fate: str) -> int:
    """Of frames with this fate; the late ones are among those that were answered."""
    return int(frames["answered"] - frames["late"] if fate == "on time" else frames[fate])


def _ages(live: Sequence[Json]) -> Figure:
    at = [step["live"]["cameras"] for step in live]
    traces = []
    for number, name in enumerate(("p50", "p95")):
        ages = [cell(step["live"]["age_at_use_ms"], name) for step in live]
        drawn = [age if isinstance(age, float) else None for age in ages]
        traces.append(line(name, at, drawn, colour=colour(number), marks=["circle"] * len(live)))
    layout = {"xaxis": axis("cameras"), "yaxis": axis("ms", from_zero=True)}
    return Figure(traces, layout, "Age of a frame when its answer can be used, against the number of cameras.", 300)

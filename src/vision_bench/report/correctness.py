"""Right and wrong of a run, beside what it took: a section of a run's page."""

from __future__ import annotations

from typing import Any

from vision_bench.bench.choice import in_words
from vision_bench.report.figures import axis, colour, line
from vision_bench.report.section import Cell, Figure, Section, Table

Json = dict[str, Any]


def correctness_section(summary: Json) -> Section | None:
    """Accuracy of each step and each fact, and how the workload stands to its chosen envelope; None without either."""
    steps = [step for step in summary["steps"] if step.get("accuracy") is not None]
    standing = summary.get("envelope")
    if not steps and standing is None:
        return None
    return Section(
        "Correctness",
        "A request without an answer got its facts wrong. Intervals count clips, not facts." if steps else "",
        figures=[_figure(steps)] if len(steps) > 1 else [],
        tables=[_steps_table(steps), _facts_table(steps)] if steps else [],
        notes=[] if standing is None else [in_words(standing)],
    )


def _figure(steps: list[Json]) -> Figure:
    ends = [step["accuracy"]["interval"] for step in steps]
    data = line(
        "facts that are right",
        [step["response_ms"]["p50"] for step in steps],
        [step["accuracy"]["share"] for step in steps],
        colour=colour(0),
        low=[end[0] for end in ends],
        high=[end[1] for end in ends],
        marks=["circle"] * len(steps),
        hover=[f"{step['name']}<br>{step['accuracy']['share']:.1%}" for step in steps],
    )
    layout = {
        "xaxis": axis("response p50, ms, from the due time"),
        "yaxis": axis("share of facts that are right", range=[0, 1.05], tickformat=".0%"),
    }
    return Figure([data | {"mode": "markers"}], layout, "Accuracy of each step against its median response.")


def _steps_table(steps: list[Json]) -> Table:
    head = ("step", "right", "facts", "share", "95 %", "clips", "answers right in every fact", "goodput/s")
    rows: list[list[Cell]] = []
    for step in steps:
        accuracy = step["accuracy"]
        low, high = accuracy["interval"]
        answers = f"{accuracy['answers']['right']} of {accuracy['answers']['count']}"
        shares = [f"{accuracy['share']:.1%}", f"{low:.1%} to {high:.1%}", accuracy["clips"], answers]
        rows.append([step["name"], accuracy["right"], accuracy["count"], *shares, step["goodput"]])
    return Table(head, rows)


def _facts_table(steps: list[Json]) -> Table:
    names = sorted({name for step in steps for name in step["accuracy"]["by_fact"]})
    rows: list[list[Cell]] = []
    for name in names:
        facts = [step["accuracy"]["by_fact"].get(name) for step in steps]
        scorer = next(fact["scorer"] for fact in facts if fact is not None)
        rows.append(
            [name, scorer, *(None if fact is None else f"{fact['right']} of {fact['count']}" for fact in facts)]
        )
    return Table(["fact", "scorer", *(step["name"] for step in steps)], rows, "Right answers by fact")

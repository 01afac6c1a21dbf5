"""A preprocess run's summary as the sections of its page: what a clip waits for, and whether the queue has an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vision_bench.report.figures import DASHES, MARKS, axis, colour, line
from vision_bench.report.run_words import VERDICT_MARKS, ends_of, step_load, step_name, with_interval
from vision_bench.report.section import Cell, Figure, Section, Table

Json = dict[str, Any]

PERCENTILE = "p90"
DRAWN = (("response_ms", "response"), ("queue_ms", "queue"))
TOLD = (
    ("response_ms", "response", ("p50", "p90", "p99")),
    ("queue_ms", "queue", ("p90",)),
    ("service_ms", "service", ("p50", "p90")),
)
NOTE = (
    "u is seconds of service offered to each worker a second. Above 1 the queue grows as long as the load lasts: a "
    "response of such a step says how long the step was."
)


def preprocess_sections(steps: Sequence[Json]) -> list[Section]:
    """Everything but what every kind has."""
    if not steps:
        return []
    figures = [figure for figure in (_figure(steps, key, name) for key, name in DRAWN) if figure is not None]
    return [Section("Load and latency", figures=figures, tables=[_table(steps)], notes=[NOTE])]


def _figure(steps: Sequence[Json], key: str, name: str) -> Figure | None:
    """A line for each arm and number of workers, against the load."""
    is_open = all(step["load"] == "open" for step in steps)
    traces = []
    for number, (arm, workers) in enumerate(dict.fromkeys((step["arm"], step["workers"]) for step in steps)):
        of_it = [step for step in steps if (step["arm"], step["workers"]) == (arm, workers)]
        of_it.sort(key=lambda step: (_load(step, is_open=is_open), step["round"]))
        if all(step[key][PERCENTILE] is None for step in of_it):
            continue
        ends = [ends_of(step[key], PERCENTILE) for step in of_it]
        traces.append(
            line(
                f"{arm}, {workers} worker{'s' * (workers > 1)}",
                [_load(step, is_open=is_open) for step in of_it],
                [step[key][PERCENTILE] for step in of_it],
                colour=colour(number),
                dash=DASHES[number % len(DASHES)],
                low=[low for low, _ in ends],
                high=[high for _, high in ends],
                marks=[MARKS[step["verdict"]] for step in of_it],
                hover=[
                    f"{step_name(step, steps)}: {with_interval(step[key], PERCENTILE)} ms of {step[key]['count']}; "
                    f"{step['verdict']}; {step_load(step)}"
                    for step in of_it
                ],
            )
        )
    if not traces:
        return None
    layout = {
        "title": {"text": f"{name.capitalize()}, {PERCENTILE}"},
        "xaxis": axis("offered rate, requests/s" if is_open else "requests at once", from_zero=True),
        "yaxis": axis("ms", is_log=True),
    }
    names = "; ".join(trace["name"] for trace in traces)
    return Figure(traces, layout, f"{name.capitalize()}, {PERCENTILE} with 95 % intervals, against the load: {names}.")


def _load(step: Json, *, is_open: bool) -> float:
    return float((step["offered_rate"] if is_open else step["concurrency"]) or 0)


def _table(steps: Sequence[Json]) -> Table:
    head = ["step", "load", "offered/s", "achieved/s", "u", "backlog, 1/s", "due", "ok"]
    head += [f"{name} {each} ms" for _, name, percentiles in TOLD for each in percentiles]
    rows: list[list[Cell]] = [
        [
            step_name(step, steps),
            step_load(step),
            step["offered_rate"],
            step["achieved_rate"],
            step["utilisation"],
            step["backlog"]["slope_per_second"],
            step["requests"]["due"],
            step["requests"]["ok"],
            *(with_interval(step[key], each) for key, _, percentiles in TOLD for each in percentiles),
        ]
        for step in steps
    ]
    return Table(head, rows, marks=[VERDICT_MARKS[step["verdict"]] for step in steps])

"""Several runs on one page, laid over each other: models, servers, versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.rundir import read_manifest, read_records
from vision_bench.bench.same_load import differences
from vision_bench.bench.summary import summarise_folder
from vision_bench.errors import InvalidRequest
from vision_bench.report.figures import DASHES, MARKS, axis, colour, ecdf, line
from vision_bench.report.run_chat_data import RunView, view_records
from vision_bench.report.run_page import step_windows
from vision_bench.report.run_words import VERDICT_MARKS, ends_of, labels, load_axis, step_load, step_name, with_interval
from vision_bench.report.section import Cell, Figure, Section, Table
from vision_bench.report.shell import render_page, write_page

Json = dict[str, Any]

PAGE = "overlay.html"
MOST_RUNS = 8
NUMBERS = (
    ("scheduled_ttft_ms", "First token, from the due time"),
    ("response_ms", "Whole answer, from the due time"),
    ("tpot_ms", "Time per output token, of good answers"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it is laid over others."""

    name: str
    manifest: Json
    summary: Json
    view: RunView


def write_overlay(
    folders: Sequence[Path], *, made_at: datetime, out: Path | None = None, title: str | None = None
) -> Path:
    """Draw the runs and give the page's path.

    Raises:
        InvalidRequest: a folder is no run of chat requests, or there are more than eight.
        InvalidSettings: the page cannot be written.
    """
    if len(folders) > MOST_RUNS:
        raise InvalidRequest(f"{len(folders)} runs on one page cannot be told apart; give {MOST_RUNS} or fewer")
    runs = _named([_read(folder) for folder in folders], folders)
    first = runs[0].summary["steps"]
    path = out or folders[0] / PAGE
    html = render_page(
        title or f"{len(runs)} runs of {runs[0].summary['workload']['name']}",
        _sections(runs),
        made_at=made_at,
        facts=[*labels(first[0] if first else {})[1:], *(f"{run.name}: {run.summary['target']}" for run in runs)],
    )
    write_page(path, html)
    return path


def _read(folder: Path) -> Run:
    summary = summarise_folder(folder)
    if summary["kind"] != "chat" or not summary["steps"]:
        raise InvalidRequest(
            f"{folder} holds {summary['kind']} with {len(summary['steps'])} steps; chat runs are laid over"
        )
    view = view_records(read_records(folder, ChatRecord), step_windows(folder, summary))
    return Run("", read_manifest(folder), summary, view)


def _named(runs: Sequence[Run], folders: Sequence[Path]) -> list[Run]:
    """By their models where these differ, else by their folders."""
    models = [str(run.manifest["labels"].get("model")) for run in runs]
    names = models if len(set(models)) == len(models) else [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names, start=1)]
    return [Run(name, run.manifest, run.summary, run.view) for name, run in zip(names, runs, strict=True)]


def _sections(runs: Sequence[Run]) -> list[Section]:
    return [_load(runs), _distributions(runs), _differences(runs)]


def _load(runs: Sequence[Run]) -> Section:
    steps = [step for run in runs for step in run.summary["steps"]]
    key_of, x_name = load_axis(steps)
    figures = []
    for key, title in NUMBERS:
        traces = []
        for number, run in enumerate(runs):
            ordered = sorted(run.summary["steps"], key=lambda step: (step[key_of] or 0, step["round"]))
            for dash, percentile in zip(DASHES, ("p50", "p95"), strict=False):
                values = [step[key][percentile] for step in ordered]
                if all(value is None for value in values):
                    continue
                ends = [ends_of(step[key], percentile) for step in ordered]
                traces.append(
                    line(
                        f"{run.name}, {percentile}",
                        [step[key_of] for step in ordered],
                        values,
                        colour=colour(number),
                        dash=dash,
                        low=[low for low, _ in ends],
                        high=[high for _, high in ends],
                        marks=[MARKS[step["verdict"]] for step in ordered],
                    )
                )
        if traces:
            layout = {"title": {"text": title}, "xaxis": axis(x_name), "yaxis": axis("ms", from_zero=True)}
            figures.append(Figure(traces, layout, f"{title}: p50 solid, p95 dashed, one colour a run."))
    figures.append(_throughput(runs, key_of, x_name))
    rows: list[list[Cell]] = [
        [
            run.name,
            step_name(step, run.summary["steps"]),
            step_load(step),
            step["verdict"],
            step["requests"]["ok"],
            step["requests"]["due"],
            step["achieved_rate"],
            step["goodput"],
            *(with_interval(step[key], name) for key, _ in NUMBERS for name in ("p50", "p95")),
        ]
        for run in runs
        for step in run.summary["steps"]
    ]
    head = ["run", "step", "load", "verdict", "ok", "due", "achieved/s", "goodput/s"]
    head += [f"{word} {name} ms" for word in ("TTFT", "response", "TPOT") for name in ("p50", "p95")]
    return Section(
        "Against load",
        figures=figures,
        tables=[Table(head, rows, marks=[VERDICT_MARKS[step["verdict"]] for step in steps])],
        notes=[
            "A filled circle is a STABLE step, a cross a SATURATED one. Curves that lie apart are no proof: "
            "vision-bench compare tests for a difference."
        ],
    )


def _throughput(runs: Sequence[Run], key_of: str, x_name: str) -> Figure:
    traces = []
    for number, run in enumerate(runs):
        ordered = sorted(run.summary["steps"], key=lambda step: (step[key_of] or 0, step["round"]))
        at, achieved = [step[key_of] for step in ordered], [step["achieved_rate"] for step in ordered]
        marks = [MARKS[step["verdict"]] for step in ordered]
        traces.append(line(run.name, at, achieved, colour=colour(number), marks=marks))
    layout = {"title": {"text": "Achieved"}, "xaxis": axis(x_name), "yaxis": axis("requests/s", from_zero=True)}
    return Figure(traces, layout, "Good answers a second, one colour a run.", 300)


def _distributions(runs: Sequence[Run]) -> Section:
    """Of the steps that every run has, by name."""
    names = [step["name"] for step in runs[0].summary["steps"]]
    common = [name for name in dict.fromkeys(names) if all(_step(run, name) for run in runs)]
    figures = []
    for name in common:
        traces = []
        for number, run in enumerate(runs):
            step = _step(run, name)
            assert step is not None  # noqa: S101 - common holds such names alone
            points = run.view.steps[step["step"]].distributions["response_ms"].ecdf()
            if points:
                traces.append(ecdf(run.name, points, colour=colour(number)))
        layout = {
            "title": {"text": f"Whole answer, from the due time: {name}"},
            "xaxis": axis("ms", is_log=True),
            "yaxis": axis("share of all that was due", tickformat=".0%", range=[0, 1.02]),
        }
        figures.append(Figure(traces, layout, f"{name}: share of all that was due answered within so long.", 300))
    text = "" if figures else "No step has the same name in every run."
    return Section("Distributions", text=text, figures=figures)


def _step(run: Run, name: str) -> Json | None:
    return next((step for step in run.summary["steps"] if step["name"] == name), None)


def _differences(runs: Sequence[Run]) -> Section:
    rows: list[list[Cell]] = [
        [run.name, each] for run in runs[1:] for each in differences(runs[0].manifest, run.manifest)
    ]
    text = f"Against {runs[0].name}. " + ("" if rows else "Workload, schedules and payloads are the same.")
    return Section("What differs", text=text, tables=[Table(["run", "what differs"], rows)] if rows else [])

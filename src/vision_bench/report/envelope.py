"""An envelope study for people: a table for a terminal, and a page with accuracy against tokens and latency."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from vision_bench.report.figures import DASHES, axis, colour, line
from vision_bench.report.section import Cell, Figure, Section, Table, Tile
from vision_bench.report.shell import render_page, shown

Json = dict[str, Any]

PAGE = "report.html"
_SERIES = ("height", "seconds", "max_pixels", "use_audio")
_HEAD = ("envelope", "prompt tokens", "request kB", "e2e p50 ms", "accuracy", "95 %", "facts", "clips")


def print_study(study: Json, out: Path) -> None:
    """Print the table, what is wrong with it, the controls and the choice."""
    console = Console(width=None if sys.stdout.isatty() else 150, markup=False, highlight=False)
    table = RichTable(show_lines=False)
    for name in ("", *_HEAD):
        table.add_column(name)
    for row in study["rows"]:
        table.add_row("*" if _is_chosen(study, row) else "", *(shown(cell) for cell in _cells(study, row)))
    console.print(table)
    for text in (*study["flags"], *map(_control_words, study["controls"]), *_choice_words(study), *_stale_words(study)):
        console.print(text)
    console.print(f"Study: {str(out).encode(errors='replace').decode()}")


def render_study(study: Json, *, made_at: datetime, title: str | None = None) -> str:
    """The page as text."""
    chosen = study["choice"]["chosen"]
    models = list(dict.fromkeys(row["model"] for row in study["rows"]))
    tiles = [Tile(row["words"], f"chosen for {row['model']}", "good") for row in chosen]
    tiles += [Tile("STALE", f"{' and '.join(study['stale'])} changed", "bad")] if study.get("stale") else []
    tiles += [Tile("none", f"reaches {study['threshold']:.0%}", "bad")] if not chosen else []
    tiles += [
        Tile(control["verdict"], f"{control['control']} control", _tone(control)) for control in study["controls"]
    ]
    return render_page(
        title or f"{study['workload']}: accuracy against what is sent",
        [
            Section(
                "Accuracy against cost",
                "Each point is one envelope: the same labelled clips, asked once more. Bars are 95 % intervals over "
                "clips; the dashed line is the threshold; a diamond is the chosen envelope.",
                figures=[
                    _figure(study, _tokens, "prompt tokens of a request", is_log=True),
                    _figure(study, _latency_ms, "e2e p50, ms"),
                ],
                tables=[_table(study)],
                notes=[*_choice_words(study), *_stale_words(study), *study["flags"]],
            ),
            Section("Which facts are lost where", figures=[_heat(study)], tables=[_facts_table(study)], is_folded=True),
            _controls_section(study),
        ],
        made_at=made_at,
        facts=[
            f"{study['items']} clips, {study['rounds']} times each",
            f"{study['concurrency']} at once",
            f"models {', '.join(models)}",
            f"threshold {study['threshold']:.0%}" + (", lower end of the interval" if study["is_sure"] else ""),
            study["target"] or "",
        ],
        tiles=tiles,
    )


# --- words


def _choice_words(study: Json) -> list[str]:
    chosen = {row["model"]: row for row in study["choice"]["chosen"]}
    words = []
    for model in dict.fromkeys(row["model"] for row in study["rows"]):
        row = chosen.get(model)
        what = "lower end" if study["is_sure"] else "accuracy"
        if row is None:
            words.append(f"{model}: no envelope reaches {study['threshold']:.0%} ({what})")
            continue
        low, high = row["accuracy"]["interval"]
        sure = "" if low >= study["threshold"] else f"; not proven: the interval begins at {low:.1%}, give more clips"
        reached = f"{row['accuracy']['share']:.1%} ({low:.1%} to {high:.1%}, {row['accuracy']['clips']} clips)"
        words.append(f"{model}: {row['words']} is the smallest that reaches {study['threshold']:.0%}: {reached}{sure}")
    return words


def _stale_words(study: Json) -> list[str]:
    """What has changed since the study; a study that never said where its workload lies says nothing."""
    stale = study.get("stale")
    if stale:
        changed = " and ".join(stale)
        return [f"STALE ({changed} changed since {study['made_at']}): what was accurate enough then may not be now"]
    return [] if stale is not None else ["The workload file is not where it was: whether it has changed is not known."]


def _control_words(control: Mapping[str, Any]) -> str:
    return f"control {control['control']}: {control['verdict']}: {control['reason']}"


def _tone(control: Mapping[str, Any]) -> str:
    return {"PASS": "good", "FAIL": "bad"}.get(control["verdict"], "")


def _is_chosen(study: Json, row: Json) -> bool:
    return any(row["model"] == one["model"] and row["envelope"] == one["envelope"] for one in study["choice"]["chosen"])


# --- tables


def _cells(study: Json, row: Json) -> list[Cell]:
    accuracy = row["accuracy"] or {"share": None, "interval": None, "count": 0, "clips": 0}
    ends = accuracy["interval"]
    several = len({one["model"] for one in study["rows"]}) > 1
    return [
        f"{row['model']}: {row['words']}" if several else row["words"],
        row["prompt_tokens"],
        None if row["request_bytes"] is None else row["request_bytes"] / 1000,
        _latency_ms(row),
        None if accuracy["share"] is None else f"{accuracy['share']:.1%}",
        None if ends is None else f"{ends[0]:.1%} to {ends[1]:.1%}",
        accuracy["count"],
        accuracy["clips"],
    ]


def _table(study: Json) -> Table:
    marks = ["ok" if _is_chosen(study, row) else "fail" if row["requests"]["failed"] else "" for row in study["rows"]]
    return Table(_HEAD, [_cells(study, row) for row in study["rows"]], "Smallest first", marks)


def _fact_names(study: Json) -> list[str]:
    return sorted({name for row in study["rows"] if row["accuracy"] for name in row["accuracy"]["by_fact"]})


def _facts_table(study: Json) -> Table:
    names = _fact_names(study)
    rows: list[list[Cell]] = []
    for row in study["rows"]:
        facts = row["accuracy"]["by_fact"] if row["accuracy"] else {}
        cells = [f"{facts[name]['right']} of {facts[name]['count']}" if name in facts else None for name in names]
        rows.append([_cells(study, row)[0], *cells])
    return Table(["envelope", *names], rows)


def _controls_section(study: Json) -> Section:
    rows = [
        [control["control"], sense, told["right"], told["right_in_control"], told["facts"], told["lost"], told["p"]]
        for control in study["controls"]
        for sense, told in control["senses"].items()
    ]
    head = ("control", "facts of the", "right", "right in the control", "asked", "lost", "McNemar p")
    return Section(
        "Is the picture used, is the sound?",
        "The largest envelope once more with black pictures, and with silence for sound. Facts of the sense that was "
        "taken away must be lost, the others must not.",
        tables=[Table(head, rows)] if rows else [],
        notes=[_control_words(control) for control in study["controls"]] or ["No control was run."],
    )


# --- figures


def _tokens(row: Json) -> float | None:
    tokens: float | None = row["prompt_tokens"]
    return tokens


def _latency_ms(row: Json) -> float | None:
    """To the last token, or to the end of an answer in one piece; None where the sample is too small."""
    median: float | None = row["e2e_ms"]["p50"]
    return row["full_response_ms"]["p50"] if median is None else median


def _figure(study: Json, cost: Callable[[Json], float | None], title: str, *, is_log: bool = False) -> Figure:
    data = []
    for number, (name, rows) in enumerate(_series(study).items()):
        rows = sorted(rows, key=lambda row: cost(row) or 0)
        ends = [row["accuracy"]["interval"] for row in rows]
        data.append(
            line(
                name,
                [cost(row) for row in rows],
                [row["accuracy"]["share"] for row in rows],
                colour=colour(number),
                dash=DASHES[number // 8 % len(DASHES)],
                low=[end[0] for end in ends],
                high=[end[1] for end in ends],
                marks=["diamond" if _is_chosen(study, row) else "circle" for row in rows],
                hover=[f"{row['words']}<br>{row['accuracy']['share']:.1%}" for row in rows],
            )
        )
    threshold = study["threshold"]
    rule = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": threshold, "y1": threshold}
    layout = {
        "xaxis": axis(title, is_log=is_log),
        "yaxis": axis("share of facts that are right", range=[0, 1.05], tickformat=".0%"),
        "shapes": [{**rule, "line": {"dash": "dash", "width": 1, "color": "var(--ink)"}}],
    }
    return Figure(data, layout, f"Accuracy against {title}, a line for each size of picture and sound.")


def _series(study: Json) -> dict[str, list[Json]]:
    """Rows that differ in how many frames are looked at, by everything else."""
    found: dict[str, list[Json]] = {}
    models = len({row["model"] for row in study["rows"]}) > 1
    for row in study["rows"]:
        if row["accuracy"] is None:
            continue
        envelope = row["envelope"]
        words = {"height": "{} lines", "seconds": "first {:g} s", "max_pixels": "{} pixels"}
        parts = [words[key].format(envelope[key]) for key in _SERIES if key in words and key in envelope]
        parts += ["with sound" if envelope.get("use_audio") else "without sound"]
        found.setdefault(", ".join([*([row["model"]] if models else []), *parts]), []).append(row)
    return found


def _heat(study: Json) -> Figure:
    names = _fact_names(study)
    rows = [row for row in study["rows"] if row["accuracy"]]
    return Figure(
        [
            {
                "type": "heatmap",
                "x": [name.removeprefix("measured.").removeprefix("said.") for name in names],
                "y": [str(_cells(study, row)[0]) for row in rows],
                "z": [[row["accuracy"]["by_fact"].get(name, {}).get("share") for name in names] for row in rows],
                "zmin": 0,
                "zmax": 1,
                "colorscale": [[0, "#b3261e"], [0.5, "#e6c65c"], [1, "#2e7d4f"]],
                "colorbar": {"title": {"text": "right"}, "tickformat": ".0%"},
                "hovertemplate": "%{y}<br>%{x}: %{z:.0%}<extra></extra>",
            }
        ],
        {"yaxis": {"autorange": "reversed", "automargin": True}, "xaxis": {"automargin": True}},
        "The share of each fact that is right in each envelope, smallest envelope on top.",
        height=140 + 26 * len(rows),
    )

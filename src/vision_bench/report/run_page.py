"""The page of a run folder: made from manifest, step lines and records alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.rundir import read_manifest, read_records, read_steps
from vision_bench.report.run_chat import chat_sections
from vision_bench.report.run_chat_data import view_records
from vision_bench.report.run_pictures import Pictures
from vision_bench.report.run_preprocess import preprocess_sections
from vision_bench.report.run_table import calibration_line
from vision_bench.report.run_words import VERDICT_MARKS, labels, step_load, step_name
from vision_bench.report.section import Cell, Section, Table, Tile
from vision_bench.report.shell import render_page, write_page

Json = dict[str, Any]

PAGE = "report.html"


def write_run_page(
    folder: Path,
    summary: Json,
    *,
    made_at: datetime,
    out: Path | None = None,
    title: str | None = None,
    clips: Path | None = None,
) -> Path:
    """Draw a run beside its records, and give the page's path.

    Args:
        summary: as ``bench.summary`` makes it of this folder.
        clips: the folder or file that the workload's media came from; None leaves pictures out.

    Raises:
        InvalidRequest: ``folder`` is no run folder.
        InvalidSettings: the page cannot be written.
    """
    path = out or folder / PAGE
    own = _own_part(folder, summary, Pictures(clips).of)
    html = render_page(
        title or f"{summary['workload']['name']}: {summary['kind']} under load",
        [verdict_section(summary), *own.sections, _provenance(read_manifest(folder))],
        made_at=made_at,
        facts=[*facts_of(summary), *own.facts],
        tiles=own.tiles if own.tiles is not None else _tiles(summary),
    )
    write_page(path, html)
    return path


class KindPart(NamedTuple):
    """What a kind puts on its page beside what every kind has; ``tiles`` None: the common ones."""

    sections: Sequence[Section] = ()
    facts: Sequence[str] = ()
    tiles: Sequence[Tile] | None = None


def _own_part(folder: Path, summary: Json, picture: Callable[[str], str | None]) -> KindPart:
    """A row for each kind that has something of its own."""
    match summary["kind"]:
        case "chat" if summary["steps"]:
            view = view_records(read_records(folder, ChatRecord), step_windows(folder, summary))
            return KindPart(chat_sections(summary, view, picture))
        case "preprocess":
            return KindPart(preprocess_sections(summary["steps"]))
        case "realtime":
            # Its sockets and codecs take 60 MB, which a page of chats does without.
            from vision_bench.report.realtime import realtime_facts, realtime_sections, realtime_tiles  # noqa: PLC0415

            return KindPart(realtime_sections(folder, summary), realtime_facts(folder), realtime_tiles(summary))
    return KindPart()


def facts_of(summary: Json) -> list[str]:
    """What every number of the page must be read with."""
    workload = summary["workload"]
    first = summary["steps"][0] if summary["steps"] else {}
    arrivals = sorted({step["arrivals"] or "closed loop" for step in summary["steps"]})
    return [
        *labels(first),
        f"arrivals {', '.join(arrivals) or 'none'}",
        f"target {summary['target'] or 'none'}",
        f"workload {workload['name']} ({workload['fingerprint']})",
        f"run {summary['run_id']} of {summary['started_at']}",
    ]


def _tiles(summary: Json) -> list[Tile]:
    steps = summary["steps"]
    due, ok, failed = (sum(step["requests"][name] for step in steps) for name in ("due", "ok", "failed"))
    stable = [step for step in steps if step["verdict"] == "STABLE" and step["offered_rate"] is not None]
    tiles = [
        Tile(len(steps), "steps" if summary["is_complete"] else "steps; the run was cut off"),
        Tile(due, "requests due"),
        Tile(ok, "good answers", "good" if not failed else ""),
        Tile(failed, "failed", "bad" if failed else ""),
    ]
    if stable:
        best = max(stable, key=lambda step: step["offered_rate"])
        tiles.append(Tile(best["offered_rate"], f"requests/s, the highest STABLE step ({best['arrivals']})"))
    return tiles


def verdict_section(summary: Json) -> Section:
    """One word a step and why: what must be read before any latency."""
    steps = summary["steps"]
    rows: list[list[Cell]] = [
        [
            step_name(step, steps),
            step_load(step),
            step["verdict"],
            step["verdict_reason"],
            step["requests"]["due"],
            step["requests"]["failed"],
        ]
        for step in steps
    ]
    notes = []
    if not summary["is_complete"]:
        notes.append("The run was cut off; --resume goes on with it.")
    expected = summary.get("expected")
    if expected is not None:
        asked = [f"{expected['rate']:g} requests/s"] if expected["rate"] is not None else []
        asked += [f"{expected['concurrency']} at once"] if expected["concurrency"] is not None else []
        reached = "reached" if expected["is_reached"] else "not reached"
        stable = "STABLE there" if expected["is_stable_there"] else "not STABLE there"
        notes.append(f"Production brings {' and '.join(asked)}: {reached}, {stable}.")
    notes += _found(summary)
    return Section(
        "Verdicts",
        tables=[
            Table(
                ["step", "load", "verdict", "reason", "due", "failed"],
                rows,
                marks=[VERDICT_MARKS[step["verdict"]] for step in steps],
            )
        ],
        notes=notes,
    )


def _found(summary: Json) -> list[str]:
    """What a run was made to find out beside its steps, a line each."""
    said = []
    if sweep := summary.get("sweep"):
        rate = "none found" if sweep["rate"] is None else f"{sweep['rate']:g}/s"
        said.append(f"Knee: {rate}. {sweep['reason']}. Ended because {sweep['ended_because']}.")
    if live := summary.get("live"):
        said.append(f"Sustained: {'none' if live['cameras'] is None else live['cameras']} live cameras.")
    if calibration := summary.get("calibration"):
        said.append(calibration_line(calibration))
    return said


def _provenance(manifest: Json) -> Section:
    """What a repeat needs."""
    environment = manifest.get("environment") or {}
    packages = environment.get("packages") or {}
    rows: list[Sequence[Cell]] = [
        ("workload fingerprint", manifest["workload"]["fingerprint"]),
        ("load", _said(manifest.get("load") or {})),
        ("server", _said(manifest.get("server") or {})),
        ("packages", _said(packages)),
        ("python", environment.get("python")),
        ("system", f"{environment.get('system')}, {environment.get('machine')}"),
        ("processors", environment.get("processors")),
        ("load average at start", environment.get("load_average")),
        ("GPUs", ", ".join(environment.get("gpus") or []) or "none told"),
        ("git revision", environment.get("git_revision")),
    ]
    return Section("What a repeat needs", tables=[Table(["", ""], rows)])


def _said(values: Json) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value not in (None, [], {}, ""))


def step_windows(folder: Path, summary: Json) -> dict[int, tuple[int, int]]:
    """Start and length of each step of the summary, ns. A killed step is as long as it was meant to be."""
    logs = {log.step: log for log in read_steps(folder)}
    found = {}
    for step in summary["steps"]:
        log = logs[step["step"]]
        end = log.end or {}
        length_ns = end.get("window_ns") or log.begin.get("window_ns") or 30 * 10**9
        found[step["step"]] = (end.get("start_ns") or log.begin["begin_ns"], length_ns)
    return found

"""A run's summary as a table for a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from vision_bench.bench.choice import in_words as envelope_words

Json = dict[str, Any]

WORKFLOW = ("workflow ms", "workflow_ms")
COLUMNS = (
    ("TTFT ms", "scheduled_ttft_ms"),
    ("response ms", "response_ms"),
    ("ICL ms", "icl_ms"),
    ("TPOT ms", "tpot_ms"),
)
PREPROCESS_PERCENTILES = ("p50", "p90", "p99")
"""Those that published studies of this stage give."""


def print_run(summary: Json, out: Path) -> None:
    """Print what a run of any kind comes to, and where it lies."""
    console = Console(width=None if sys.stdout.isatty() else 170, markup=False, highlight=False)
    match summary["kind"]:
        case "chat":
            _print_chat(console, summary)
        case "realtime":
            _print_realtime(console, summary)
        case "preprocess":
            _print_preprocess(console, summary)
    for step in summary["steps"]:
        console.print(f"{step['name']}: {step['verdict']}: {step['verdict_reason']}")
    for step in summary["steps"]:
        if step.get("live"):
            console.print(f"{step['name']}: {live_line(step['live'])}")
    if live := summary.get("live"):
        console.print(f"Live cameras sustained: {'none' if live['cameras'] is None else live['cameras']}.")
    if calibration := summary.get("calibration"):
        console.print(calibration_line(calibration))
    if sweep := summary.get("sweep"):
        rate = "none found" if sweep["rate"] is None else f"{sweep['rate']:g}/s"
        console.print(f"Knee: {rate}. {sweep['reason']}. Ended because {sweep['ended_because']}.")
    console.print(f"Run folder: {str(out).encode(errors='replace').decode()}")


def live_line(live: Json) -> str:
    """How fresh a step's answers about live cameras are, in one line."""
    frames, age = live["frames"], live["age_of_information_ms"]["mean"]
    return (
        f"{live['missed']} of {frames['due']} frames missed within {live['deadline_ms']:g} ms ({frames['late']} late, "
        f"{frames['dropped']} dropped, {frames['failed']} failed); age at use {_cell(live['age_at_use_ms'])} ms; "
        f"age of information {'n/a' if age is None else f'{age:.0f} ms'} in the mean"
    )


def calibration_line(calibration: Json) -> str:
    """What the client's own error was, in one line."""
    errors = "; ".join(
        f"{words} {_signed(calibration[name]['p50'])} / {_signed(calibration[name]['p99'])} ms"
        for name, words in (("ttft_ms", "TTFT"), ("tpot_ms", "TPOT"), ("e2e_ms", "e2e"))
    )
    return (
        f"Calibration at {calibration['rate']:g}/s, reported less true, p50 / p99: {errors} "
        f"({calibration['verdict']}; {calibration['ok']} of {calibration['requests']} answered)"
    )


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _print_chat(console: Console, summary: Json) -> None:
    workload = summary["workload"]
    first = summary["steps"][0] if summary["steps"] else {}
    table = Table(show_lines=False)
    # Where media are encoded inside the clock, what counts is the way from the decision to a checked answer.
    columns = (WORKFLOW, *COLUMNS) if first.get("encode") == "inside" else COLUMNS
    for name in ("step", "due", "ok", "achieved/s", *(name for name, _ in columns), "goodput/s", "verdict"):
        table.add_column(name)
    for step in summary["steps"]:
        requests = step["requests"]
        table.add_row(
            f"{step['name']}, {step['arrivals'] or 'closed loop'}, {step['duration_seconds']:.0f} s",
            str(requests["due"]),
            f"{requests['ok']} ({requests['ok'] / requests['due']:.0%})" if requests["due"] else "0",
            _number(step["achieved_rate"]),
            *(_cell(step[column]) for _, column in columns),
            _number(step["goodput"]),
            step["verdict"],
        )
    console.print(
        f"{workload['name']} ({workload['fingerprint']}): model {first.get('model')}, media {first.get('media')}, "
        f"region {first.get('region') or 'not told'}"
    )
    console.print(table)
    for step in summary["steps"]:
        if step.get("accuracy") is not None:
            console.print(f"{step['name']}: {accuracy_words(step['accuracy'])}")
    if summary.get("envelope") is not None:
        console.print(envelope_words(summary["envelope"]))
    console.print("p50 / p95 / p99 (count). TTFT and response from the due time, over all that was due; - is withheld.")


def accuracy_words(accuracy: Json) -> str:
    """Facts and answers that are right, with counts and the interval of the facts."""
    low, high = accuracy["interval"]
    answers = accuracy["answers"]
    return (
        f"accuracy {accuracy['share']:.1%} of {accuracy['count']} facts (95 %: {low:.1%} to {high:.1%}, "
        f"{accuracy['clips']} clips); {answers['right']} of {answers['count']} answers right in every fact"
    )


def _print_preprocess(console: Console, summary: Json) -> None:
    table = Table(show_lines=False)
    numbers = (("response ms", "response_ms"), ("service ms", "service_ms"), ("queue ms", "queue_ms"))
    for name in ("step", "due", "ok", "achieved/s", "load", *(name for name, _ in numbers), "backlog /s", "verdict"):
        table.add_column(name)
    for step in summary["steps"]:
        table.add_row(
            f"{step['name']}, {step['arrivals'] or 'closed loop'}, {step['duration_seconds']:.0f} s",
            str(step["requests"]["due"]),
            str(step["requests"]["ok"]),
            _number(step["achieved_rate"]),
            _number(step["utilisation"]),
            *(_cell(step[column], PREPROCESS_PERCENTILES) for _, column in numbers),
            _number(step["backlog"]["slope_per_second"]),
            step["verdict"],
        )
    workload = summary["workload"]
    first = summary["steps"][0] if summary["steps"] else {}
    console.print(
        f"{workload['name']} ({workload['fingerprint']}): {first.get('media')} for {first.get('model')}, "
        f"{first.get('threads')} thread(s) a worker"
    )
    console.print(table)
    console.print(
        "p50 / p90 / p99 (count). Response from the due time, over all that was due; load is service time offered to a "
        "worker a second; - is withheld."
    )


def _cell(column: Json, shown: tuple[str, ...] = ("p50", "p95", "p99")) -> str:
    """Percentiles and their count; a dash is withheld, with its reason in summary.json."""
    if not column["count"]:
        return "n/a (0 samples)"
    numbers = " / ".join("-" if column[name] is None else f"{column[name]:.1f}" for name in shown)
    return f"{numbers} ({column['count']})"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


REALTIME = (
    ("first chunk ms", "startup", "ttfc_ms"),
    ("playback ms", "startup", "playback_start_ms"),
    ("steady gap ms", "chunks", "interval_steady_ms"),
    ("RTF", "chunks", "video_rtf"),
    ("event to picture ms", "interactions", "first_affected_ms"),
)


def _print_realtime(console: Console, summary: Json) -> None:
    first = summary["steps"][0] if summary["steps"] else {}
    table = Table(show_lines=False)
    for name in ("step", "sessions ok", *(name for name, _, _ in REALTIME), "in time", "stalls", "verdict"):
        table.add_column(name)
    for step in summary["steps"]:
        requests, deadlines = step["requests"], step["chunks"]["deadlines"]
        table.add_row(
            f"{step['name']}, {step['arrivals'] or 'closed loop'}, {step['duration_seconds']:.0f} s",
            f"{requests['ok']} of {requests['due']}",
            *(mean_to_max(step[group][name]) for _, group, name in REALTIME),
            "n/a" if deadlines["attainment"] is None else f"{deadlines['attainment']:.1%}",
            str(step["pictures"]["stalls"]),
            step["verdict"],
        )
    workload = summary["workload"]
    console.print(
        f"{workload['name']} ({workload['fingerprint']}): model {first.get('model')}, {first.get('media')}, watched at "
        f"{first.get('watched_at_fps')} fps"
    )
    console.print(table)
    console.print(
        "mean to max (count); median to never where a session had none. RTF under 1 keeps up; in time: steady chunks "
        "by their deadline."
    )
    for step in summary["steps"]:
        for failure in step["failures"]:
            console.print(f"{failure['count']} x {failure['outcome']}: {failure['detail']}")
    for warning in summary["warnings"]:
        console.print(f"note: {warning}")


def mean_to_max(column: Json) -> str:
    """Sessions are few: a mean and the largest, with their count. What one of them never had has neither."""
    if not column["count"]:
        return "n/a (0 samples)"
    if column["mean"] is None:
        return f"{_short(column['p50'])} to never ({column['count']})"
    return f"{_short(column['mean'])} to {_short(column['max'])} ({column['count']})"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:,.{2 if value < 10 else 0}f}"

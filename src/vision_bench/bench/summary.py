"""The summary of a run folder, made from its records alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vision_bench.bench.kind import Kind
from vision_bench.bench.kinds import kind_named
from vision_bench.bench.rundir import SUMMARY, StepLog, read_manifest, read_steps, write_json
from vision_bench.bench.sweep import Sweep, knee, read_points

Json = dict[str, Any]

SCHEMA = 1


def write_summary(path: Path) -> Json:
    """Make the summary, put it into the folder with what else the kind writes there, and give it.

    Raises:
        InvalidRequest: ``path`` is no run folder.
        OperatorError: the folder cannot be written.
    """
    manifest = read_manifest(path)
    kind = kind_named(manifest["kind"])
    kind.finish(path, manifest)
    summary = summarise_folder(path)
    write_json(path / SUMMARY, summary)
    kind.write_more(path, manifest, summary)
    return summary


def summarise_folder(path: Path) -> Json:
    """The summary; nothing is written.

    Raises:
        InvalidRequest: ``path`` is no run folder.
    """
    manifest = read_manifest(path) | {"folder": str(path)}
    kind = kind_named(manifest["kind"])
    steps = _steps(path, manifest, kind)
    expected = manifest["workload"]["values"]
    search = _search(manifest["plan"], steps)
    is_over = len(steps) == len(manifest["plan"]) if search is None else search["is_over"]
    return {
        "schema": SCHEMA,
        "kind": manifest["kind"],
        "run_id": manifest["run_id"],
        "started_at": manifest["started_at"],
        "workload": {"name": manifest["workload"]["name"], "fingerprint": manifest["workload"]["fingerprint"]},
        "target": manifest["workload"]["url"],
        "is_complete": is_over and all(step["is_complete"] for step in steps),
        "expected": _expected(expected.get("expected_rate"), expected.get("expected_concurrency"), steps),
        "calibration": manifest.get("calibration"),
        "sweep": search,
        "steps": steps,
        **kind.totals(manifest, steps),
    }


def _steps(path: Path, manifest: Json, kind: Kind) -> list[Json]:
    """Every step that was begun, at its last attempt."""
    last: dict[int, StepLog] = {}
    warmed: dict[int, int] = {}  # the step that a warm-up came before
    warm_ups: list[int] = []
    for log in read_steps(path):
        if log.begin["plan"] is None:  # warming up belongs to no step
            warm_ups.append(log.step)
            continue
        last[log.begin["plan"]] = log
        warmed |= dict.fromkeys(warm_ups, log.step)
        warm_ups.clear()
    logs = {log.step: log for log in last.values()}
    ends = dict.fromkeys(logs, 0)
    if any(log.end is None for log in logs.values()):
        for record in kind.read(path):
            ends[record.step] = max(ends.get(record.step, 0), record.stop_ns or 0)
    tallies = {step: kind.tally(manifest, log, ends[step]) for step, log in logs.items()}
    for record in kind.read(path):
        step = warmed.get(record.step, record.step) if kind.sees_warm_up else record.step
        if step in tallies:
            tallies[step].add(record)
    return [_named(manifest, log) | tallies[step].summary() for step, log in logs.items()]


def _named(manifest: Json, log: StepLog) -> Json:
    """What every number of a step must be read with."""
    begin = log.begin
    shown = ("name", "load", "round", "rate", "concurrency", "arrivals", "schedule_sha256")
    return {"step": log.step, **{key: begin[key] for key in shown}, **manifest["labels"], **begin.get("variant", {})}


def _search(plan: Any, steps: list[Json]) -> Json | None:
    """What the search for the knee came to; None where the steps were given."""
    if not isinstance(plan, dict):
        return None
    sweep = Sweep(**plan["sweep"])
    return knee(sweep, read_points(steps, sweep.target))


def _expected(rate: float | None, concurrency: int | None, steps: list[Json]) -> Json | None:
    """Whether the run reached the load that production brings; None where the workload does not say it."""
    if rate is None and concurrency is None:
        return None
    reached = [
        (rate is None or (step["offered_rate"] or 0) >= rate)
        and (concurrency is None or (step["in_flight"]["mean"] or 0) >= concurrency)
        for step in steps
    ]
    is_stable = any(is_met and step["verdict"] == "STABLE" for is_met, step in zip(reached, steps, strict=True))
    return {"rate": rate, "concurrency": concurrency, "is_reached": any(reached), "is_stable_there": is_stable}

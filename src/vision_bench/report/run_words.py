"""How a step and a column of a summary are put into words, on every page alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vision_bench.report.section import Cell
from vision_bench.report.shell import shown

Json = dict[str, Any]

VERDICT_MARKS = {"STABLE": "ok", "SATURATED": "fail", "CLIENT-LIMITED": "warn", "UNDETERMINED": "warn"}


def step_name(step: Json, steps: Sequence[Json] = ()) -> str:
    """``rate 5``; with its round where the steps have several."""
    is_repeated = any(other.get("round") for other in steps)
    return f"{step['name']}, round {step['round'] + 1}" if is_repeated else str(step["name"])


def step_load(step: Json) -> str:
    """Arrivals, duration and what was in flight: what a latency must be read with."""
    arrivals = step["arrivals"] or "closed loop"
    mean = (step.get("in_flight") or {}).get("mean")
    seconds = step["duration_seconds"]
    return (
        f"{arrivals}, {'n/a' if seconds is None else f'{seconds:.3g}'} s, "
        f"{'n/a' if mean is None else f'{mean:.3g}'} in flight"
    )


def load_axis(steps: Sequence[Json]) -> tuple[str, str]:
    """The key of a step that says its load, and the axis' title: the offered rate where every step has one."""
    if all(step["offered_rate"] is not None for step in steps):
        return "offered_rate", "offered rate, requests/s"
    return "concurrency", "requests at once"


def labels(step: Json) -> list[str]:
    """Model, media shape, region."""
    return [
        f"model {step.get('model') or 'not told'}",
        f"media {step.get('media') or 'not told'}",
        f"region {step.get('region') or 'not told'}",
    ]


def cell(column: Json, name: str = "p50") -> Cell:
    """A number of a column; where it is withheld, why."""
    value = column.get(name)
    if value is not None:
        return float(value)
    return f"– ({(column.get('withheld') or {}).get(name, '0 samples')})"


def with_interval(column: Json, name: str) -> str:
    """``12.3 [11.9, 13.1]``; where it is withheld, why."""
    value = column.get(name)
    ends = (column.get("interval") or {}).get(name)
    if value is None:
        return str(cell(column, name))
    if ends is None:
        return shown(float(value))
    low, high = ("∞" if end is None else shown(float(end)) for end in ends)
    return f"{shown(float(value))} [{low}, {high}]"


def ends_of(column: Json, name: str) -> tuple[float | None, float | None]:
    """Both ends of a percentile's interval."""
    ends = (column.get("interval") or {}).get(name)
    return (None, None) if ends is None else (ends[0], ends[1])

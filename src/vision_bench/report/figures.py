"""Numbers to Plotly figures as plain JSON: lines, distributions, bars, waterfalls. Plotly itself is not imported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

COLOURS = tuple(f"var(--c{number})" for number in range(1, 9))
DASHES = ("solid", "dash", "dot", "dashdot")
MARKS = {"STABLE": "circle", "SATURATED": "x", "CLIENT-LIMITED": "diamond-open", "UNDETERMINED": "circle-open"}
"""A point's form by its step's verdict, so that colour is not all that tells."""


def colour(number: int) -> str:
    """One of eight, in turn."""
    return COLOURS[number % len(COLOURS)]


def line(
    name: str,
    x: Sequence[Any],
    y: Sequence[float | None],
    *,
    colour: str,
    dash: str = "solid",
    low: Sequence[float | None] | None = None,
    high: Sequence[float | None] | None = None,
    marks: Sequence[str] | None = None,
    hover: Sequence[str] | None = None,
    shape: str = "linear",
    **more: Any,
) -> Json:
    """A line; with points where ``marks`` names their forms, and bars of uncertainty between ``low`` and ``high``."""
    trace: Json = {
        "type": "scatter",
        "name": name,
        "x": list(x),
        "y": list(y),
        "mode": "lines" if marks is None else "lines+markers",
        "line": {"color": colour, "dash": dash, "width": 2, "shape": shape},
        **more,
    }
    if marks is not None:
        trace["marker"] = {"symbol": list(marks), "size": 9, "color": colour}
    if hover is not None:
        trace |= {"text": list(hover), "hovertemplate": "%{text}<extra></extra>"}
    if low is not None and high is not None:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": _reach(y, high),
            "arrayminus": [-reach for reach in _reach(y, low)],
            "thickness": 1,
            "color": colour,
        }
    return trace


def _reach(y: Sequence[float | None], ends: Sequence[float | None]) -> list[float]:
    """From a value to the end of its interval; none where one of them is missing."""
    return [0.0 if value is None or end is None else end - value for value, end in zip(y, ends, strict=True)]


def ecdf(name: str, points: Sequence[tuple[float, float]], *, colour: str, dash: str = "solid", **more: Any) -> Json:
    """A distribution: the share of values at or under each value. ``points`` as ``Distribution.ecdf`` has them."""
    return line(
        name,
        [value for value, _ in points],
        [share for _, share in points],
        colour=colour,
        dash=dash,
        shape="hv",
        hovertemplate="%{y:.1%} at most %{x:.4g}<extra>%{fullData.name}</extra>",
        **more,
    )


def bars(name: str, x: Sequence[Any], y: Sequence[float | None], *, colour: str, **more: Any) -> Json:
    """Upright bars."""
    return {"type": "bar", "name": name, "x": list(x), "y": list(y), "marker": {"color": colour}, **more}


def spans(
    name: str, rows: Sequence[str], starts: Sequence[float], lengths: Sequence[float], *, colour: str, **more: Any
) -> Json:
    """Lying bars from a start on: a waterfall. The first row is on top if the axis is reversed."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(rows),
        "x": list(lengths),
        "base": list(starts),
        "marker": {"color": colour},
        **more,
    }


def axis(title: str, *, is_log: bool = False, from_zero: bool = False, **more: Any) -> Json:
    """An axis with its unit in the title."""
    made: Json = {"title": {"text": title}, **more}
    if is_log:
        made["type"] = "log"
    if from_zero:
        made["rangemode"] = "tozero"
    return made


def thin(points: Sequence[Any], most: int) -> list[Any]:
    """At most ``most`` of the points, the first and the last among them, evenly by their place."""
    if len(points) <= most:
        return list(points)
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


class Distribution:
    """Any number of values in constant memory, each known to one percent of itself.

    Values are counted in cells whose ends are one percent apart; those of 0 and below share one cell.
    """

    RATIO = 1.01
    _LOG = math.log(RATIO)

    def __init__(self) -> None:
        self._cells: dict[int, int] = {}
        self._zeros = 0
        self.count = 0

    def add(self, value: float) -> None:
        """Count one. An infinite one is counted, and is above every point."""
        self.count += 1
        if value <= 0:
            self._zeros += 1
        elif value < math.inf:
            cell = math.floor(math.log(value) / self._LOG)
            self._cells[cell] = self._cells.get(cell, 0) + 1

    def ecdf(self, most: int = 300) -> list[tuple[float, float]]:
        """(upper end of a cell, share of all values at or under it), ascending; at most ``most`` points."""
        below = self._zeros
        points = [(0.0, below / self.count)] if below else []
        for cell in sorted(self._cells):
            if not below:
                points.append((math.exp(cell * self._LOG), 0.0))
            below += self._cells[cell]
            points.append((math.exp((cell + 1) * self._LOG), below / self.count))
        return thin(points, most)

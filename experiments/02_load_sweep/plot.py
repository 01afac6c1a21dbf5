"""Latency against load as one picture: p50 and p95 of scheduled TTFT and response, the verdict of each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

Json = dict[str, Any]

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 900, 380, 80, 50, 190, 70
COLOURS = {"STABLE": "#188038", "SATURATED": "#d93025", "CLIENT-LIMITED": "#a142f4", "UNDETERMINED": "#9aa0a6"}
LINES = (
    ("scheduled_ttft_ms", "p50", "TTFT p50", "#1a73e8", ""),
    ("scheduled_ttft_ms", "p95", "TTFT p95", "#1a73e8", "5 4"),
    ("response_ms", "p50", "response p50", "#e8710a", ""),
    ("response_ms", "p95", "response p95", "#e8710a", "5 4"),
)


def draw(result: Json) -> str:
    """An SVG document. A percentile that was withheld leaves a gap in its line."""
    steps = result["steps"]
    loads = [step["offered_rate"] or step["concurrency"] for step in steps]
    values = [step[column][name] for step in steps for column, name, *_ in LINES if step[column][name]]
    low, high = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))

    def x(load: float) -> float:
        return float(LEFT + (WIDTH - LEFT - RIGHT) * load / max(loads))

    def y(value: float) -> float:
        share: float = math.log10(value / low) / math.log10(high / low)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - share)

    unit = "requests a second offered" if steps[0]["offered_rate"] else "requests at once"
    parts = [*_axes(low, high, y, loads, x, unit)]
    if capacity := result.get("capacity"):
        parts.append(_rule(x(capacity), f"capacity {capacity:g}/s", "#202124", 14))
    if (knee := result.get("knee")) and knee["rate"] is not None:
        parts.append(_rule(x(knee["rate"]), f"knee found {knee['rate']:g}/s", "#188038", 28))
    for row, (column, name, label, colour, dash) in enumerate(LINES):
        points = [
            (x(load), y(step[column][name])) for load, step in zip(loads, steps, strict=True) if step[column][name]
        ]
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
        at = TOP + 16 * row
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
        )
        parts.append(
            f'<line x1="{WIDTH - RIGHT + 20}" x2="{WIDTH - RIGHT + 50}" y1="{at}" y2="{at}" stroke="{colour}" '
            f'stroke-width="2" stroke-dasharray="{dash}"/><text x="{WIDTH - RIGHT + 58}" y="{at + 4}">{label}</text>'
        )
    for load, step in zip(loads, steps, strict=True):
        parts.append(
            f'<circle cx="{x(load):.1f}" cy="{HEIGHT - BOTTOM + 12}" r="5" fill="{COLOURS[step["verdict"]]}"/>'
        )
    for row, (verdict, colour) in enumerate(COLOURS.items()):
        at = TOP + 90 + 16 * row
        parts.append(f'<circle cx="{WIDTH - RIGHT + 35}" cy="{at}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 58}" y="{at + 4}">{verdict}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="8" y="18" font-size="14">{escape(result["question"])}</text>{"".join(parts)}</svg>\n'
    )


def _axes(  # noqa: PLR0917 - two axes with their scales
    low: float, high: float, y: Callable[[float], float], loads: Sequence[float], x: Callable[[float], float], unit: str
) -> list[str]:
    parts = []
    value = low
    while value <= high:
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#dadce0"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g} ms</text>')
        value *= 10
    parts += [
        f'<text x="{x(load):.1f}" y="{HEIGHT - BOTTOM + 34}" text-anchor="middle">{load:g}</text>' for load in loads
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, f'<text x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">{unit}; the dot is the verdict</text>']


def _rule(across: float, label: str, colour: str, down: int) -> str:
    return (
        f'<line x1="{across:.1f}" x2="{across:.1f}" y1="{TOP - 20}" y2="{HEIGHT - BOTTOM}" stroke="{colour}" '
        f'stroke-dasharray="2 3"/><text x="{across - 4:.1f}" y="{TOP - 20 + down}" text-anchor="end" '
        f'fill="{colour}">{label}</text>'
    )

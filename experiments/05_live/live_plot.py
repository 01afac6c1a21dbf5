"""The result as one picture: how old the frames were, and where the time went, at each rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

LEFT, WIDTH, ROW = 150, 760, 74
STAGES = (
    ("capture", "#7d9cc9"),
    ("transport", "#a9bedd"),
    ("request", "#d9c9a3"),
    ("selection", "#8bb89a"),
    ("encode", "#5c9a78"),
    ("queue", "#c58f5a"),
    ("first_token", "#5b7fb5"),
    ("final_token", "#8e77b0"),
    ("sse_transport", "#bfb1d4"),
    ("parse", "#b8b8b8"),
    ("validation", "#8c8c8c"),
)
"""In their order; what is not drawn is held by one that is, or was not told."""


def draw(result: Mapping[str, Any]) -> str:
    """An SVG document."""
    rows = result["rates"]
    ages = _ages(rows, top=60)
    below = 60 + ROW * len(rows) + 90
    times = _times(rows, top=below)
    height = below + ROW * len(rows) + 110
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 90}" height="{height}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>{ages}{times}</svg>\n'
    )


def _ages(rows: Sequence[Mapping[str, Any]], top: int) -> str:
    """A dot a question: how long its frame had been held."""
    longest = _round_up(max(max(row["newest_frame"]["frame_ages_ms"]) for row in rows))
    parts = [_text(8, top - 34, "Age of the newest frame when it was chosen, ms: a dot a question, a line at p50", 15)]
    parts += _axis(longest, top - 8, ROW * len(rows))
    for number, row in enumerate(rows):
        y = top + ROW * number
        own = row["newest_frame"]
        parts.append(_text(8, y + 24, f"{row['published_fps']} frames a second", weight="bold"))
        parts.append(_text(8, y + 41, f"p50 {own['frame_age_ms']['p50']:.0f}, p95 {own['frame_age_ms']['p95']:.0f}"))
        parts.append(_text(8, y + 56, f"of {own['frame_age_ms']['count']}"))
        for place, age in enumerate(own["frame_ages_ms"]):
            x = LEFT + WIDTH * age / longest
            parts.append(f'<circle cx="{x:.1f}" cy="{y + 10 + place * 29 % 44}" r="3" fill="#5b7fb5" opacity="0.6"/>')
        x = LEFT + WIDTH * own["frame_age_ms"]["p50"] / longest
        parts.append(f'<path d="M{x:.1f} {y + 2}v58" stroke="#b23a30" stroke-width="2"/>')
    return "".join(parts)


def _times(rows: Sequence[Mapping[str, Any]], top: int) -> str:
    """A bar a rate and kind of question: medians of the stages, one after the other."""
    kinds = (("newest_frame", "a frame"), ("last_5_s", "a segment"))
    bars = [
        (row["published_fps"], name, [(stage, _median(row[kind], stage)) for stage, _ in STAGES], row[kind])
        for row in rows
        for kind, name in kinds
    ]
    longest = _round_up(max(sum(ms for _, ms in stages) for _, _, stages, _ in bars))
    parts = [_text(8, top - 34, "Where the time goes, ms: medians of the stages, without the frame's age", 15)]
    parts += _axis(longest, top - 8, ROW * len(rows))
    colours = dict(STAGES)
    for number, (rate, name, stages, own) in enumerate(bars):
        y, x = top + ROW // 2 * number, float(LEFT)
        count = own["frames_per_question"]["p50"]
        parts.append(_text(8, y + 18, f"{rate} fps, {name}" + (f" ({count:.0f})" if count > 1 else "")))
        for stage, ms in stages:
            width = WIDTH * ms / longest
            title = f"<title>{escape(stage)} {ms:.2f} ms</title>"
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="22" fill="{colours[stage]}">{title}</rect>'
            )
            if width > 70:
                parts.append(_text(x + 5, y + 19, f"{stage.replace('_', ' ')} {ms:.0f}", fill="white"))
            x += width
        parts.append(_text(x + 6, y + 19, f"{sum(ms for _, ms in stages):.0f}"))
    y = top + ROW * len(rows) + 20
    for number, (stage, colour) in enumerate(STAGES):
        x = LEFT + number % 6 * 130
        parts.append(f'<rect x="{x}" y="{y + number // 6 * 22}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(x + 17, y + 11 + number // 6 * 22, stage.replace("_", " ")))
    return "".join(parts)


def _median(own: Mapping[str, Any], stage: str) -> float:
    """Of a stage between two clocks the middle of its range's median ends; 0 where there is none."""
    found = own["stages"][stage]
    if found["ms"]["p50"] is not None:
        return float(found["ms"]["p50"])
    if "low_ms" in found:
        return float(found["low_ms"]["p50"] + found["high_ms"]["p50"]) / 2
    return 0.0


def _axis(longest: float, top: float, height: float) -> list[str]:
    parts = []
    for step in range(6):
        x = LEFT + WIDTH * step / 5
        parts.append(f'<path d="M{x:.1f} {top}v{height}" stroke="#ddd"/>')
        parts.append(_text(x, top - 4, f"{longest * step / 5:g}", anchor="middle", fill="#666"))
    return parts


def _round_up(value: float) -> float:
    step = 100.0 if value > 200 else 50.0
    return step * (int(value / step) + 1)


def _text(
    x: float, y: float, text: str, size: int = 12, *, anchor: str = "start", fill: str = "#222", weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )

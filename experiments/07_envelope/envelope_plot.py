"""The result as one picture: every fact in every envelope, and what a request costs there."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

LEFT, TOP, CELL_WIDTH, CELL_HEIGHT = 200, 90, 84, 21
BARS = 190
"""Pixels of the longest bar of tokens."""
WRONG, HALF, RIGHT = (178, 58, 48), (232, 200, 96), (64, 140, 96)


def draw(result: Mapping[str, Any]) -> str:
    """An SVG document."""
    labelled, flashes = result["labelled"], result["flashes"]
    chosen = f"* is the smallest that reaches {labelled['threshold']:.0%}"
    upper = _grid(labelled, TOP, f"{labelled['items']} clips, every fact but flashes ({chosen})")
    below = TOP + CELL_HEIGHT * len(labelled["rows"]) + 110
    lower = _grid(flashes, below, "The same clips at 240 lines, flashes of 0.1 s")
    facts = max(len(study["rows"][0]["facts"]) for study in (labelled, flashes))
    width = LEFT + CELL_WIDTH * (facts + 1) + BARS + 90
    height = below + CELL_HEIGHT * len(flashes["rows"]) + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>{upper}{lower}</svg>\n'
    )


def _grid(study: Mapping[str, Any], top: int, title: str) -> str:
    """A row for each envelope, smallest first: its facts, all of them together, its tokens."""
    rows = study["rows"]
    names = list(rows[0]["facts"])
    most = max(row["prompt_tokens"] for row in rows)
    chosen = [one["envelope"] for one in study["chosen"]]
    parts = [_text(8, top - 62, title, size=14)]
    for place, name in enumerate([*names, "all"]):
        x = LEFT + CELL_WIDTH * place + CELL_WIDTH / 2
        parts.append(_text(x, top - 8, name.replace("_", " "), anchor="middle"))
    parts.append(_text(LEFT + CELL_WIDTH * (len(names) + 1) + 12, top - 8, "prompt tokens"))
    for number, row in enumerate(rows):
        y = top + CELL_HEIGHT * number
        mark = "* " if row["envelope"] in chosen else ""
        parts.append(_text(LEFT - 8, y + 14, mark + row["words"], anchor="end"))
        shares = [*row["facts"].values(), [row["accuracy"]["right"], row["accuracy"]["count"]]]
        parts += [_cell(LEFT + CELL_WIDTH * place, y, *share) for place, share in enumerate(shares)]
        parts.append(_bar(LEFT + CELL_WIDTH * len(shares) + 12, y, row["prompt_tokens"], most))
    return "".join(parts)


def _cell(x: float, y: float, right: int, count: int) -> str:
    share = right / count
    return (
        f'<rect x="{x}" y="{y}" width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}" fill="{_colour(share)}"/>'
        + _text(
            x + CELL_WIDTH / 2, y + 14, f"{right} of {count}", anchor="middle", fill="white" if share > 0.8 else "#222"
        )
    )


def _bar(x: float, y: float, tokens: float, most: float) -> str:
    width = BARS * tokens / most
    bar = f'<rect x="{x}" y="{y + 3}" width="{width:.1f}" height="{CELL_HEIGHT - 8}" fill="#5b7fb5"/>'
    return bar + _text(x + width + 5, y + 14, f"{tokens:,.0f}")


def _colour(share: float) -> str:
    low, high, part = (WRONG, HALF, share * 2) if share < 0.5 else (HALF, RIGHT, share * 2 - 1)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(low, high, strict=True))


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 11, fill: str = "#222") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">{escape(text)}</text>'
    )

"""The result as one picture: requests a second of each arm in each cell, as bars on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

COLOURS = {"direct": "#9aa0a6", "ours": "#1a73e8", "plain": "#e8710a", "nginx": "#188038", "litellm": "#a142f4"}
BAR, GAP, LEFT, WIDTH = 14, 12, 150, 900


def draw(rows: Sequence[dict[str, Any]]) -> str:
    """An SVG document: a group of bars a cell, each with its figure."""
    rates = [row["rate_qps"] for row in rows]
    low = 10 ** math.floor(math.log10(min(rates)))
    high = max(rates)
    scale = (WIDTH - LEFT - 190) / math.log10(high / low)
    parts: list[str] = []
    y = 50
    for cell in dict.fromkeys(row["cell"] for row in rows):
        of_cell = [row for row in rows if row["cell"] == cell]
        parts.append(f'<text x="8" y="{y + BAR * len(of_cell) / 2 + 4}" font-weight="bold">{escape(cell)}</text>')
        for row in of_cell:
            length = max(1.0, math.log10(row["rate_qps"] / low) * scale)
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" fill="{COLOURS[row["arm"]]}"/>'
                f'<text x="{LEFT + length + 6:.1f}" y="{y + BAR - 4}">{escape(_label(row))}</text>'
            )
            y += BAR
        y += GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="8" y="22" font-size="14">Requests a second by body size and concurrency (logarithmic; '
        f"streams: time to the first byte)</text>{''.join(parts)}</svg>\n"
    )


def _label(row: dict[str, Any]) -> str:
    added = "" if row["added_p50_ms"] is None else f", p50 +{row['added_p50_ms']} ms"
    return f"{row['arm']} {row['rate_qps']:g}/s{added}"

"""The result as one picture: the gateway's memory over the passes, and what requests came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, LEFT, HEIGHT, TOP = 900, 90, 220, 50
BAR = 15


def draw(samples: Sequence[tuple[float, int, int]], table: Mapping[str, Mapping[str, int]]) -> str:
    """An SVG document.

    Args:
        samples: (seconds, resident bytes, number of the pass; 0 before the first).
        table: planned by observed.
    """
    outcomes: Counter[str] = Counter()
    for row in table.values():
        outcomes.update(row)
    bars = sorted(outcomes.items(), key=lambda entry: -entry[1])
    below = TOP + HEIGHT + 60
    height = below + BAR * len(bars) + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="8" y="22" font-size="14">Memory of the gateway (VmRSS, MiB) over the passes</text>'
        f"{_memory(samples)}"
        f'<text x="8" y="{below - 12}" font-size="14">What requests and batch items came to</text>'
        f"{_bars(bars, below)}</svg>\n"
    )


def _memory(samples: Sequence[tuple[float, int, int]]) -> str:
    longest = max(seconds for seconds, _, _ in samples) or 1.0
    top = max(size for _, size, _ in samples) * 1.1

    def x(seconds: float) -> float:
        return LEFT + seconds / longest * (WIDTH - LEFT - 30)

    def y(size: float) -> float:
        return TOP + HEIGHT * (1 - size / top)

    parts = []
    for step in range(5):
        size = top * step / 4
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 30}" y1="{y(size):.1f}" y2="{y(size):.1f}" stroke="#dadce0"/>'
            f'<text x="{LEFT - 8}" y="{y(size) + 4:.1f}" text-anchor="end">{size / 2**20:.0f}</text>'
        )
    starts = {number: seconds for seconds, _, number in reversed(samples) if number}
    for number, seconds in sorted(starts.items()):
        parts.append(
            f'<line x1="{x(seconds):.1f}" x2="{x(seconds):.1f}" y1="{TOP}" y2="{TOP + HEIGHT}" stroke="#9aa0a6" '
            f'stroke-dasharray="4 3"/><text x="{x(seconds) + 4:.1f}" y="{TOP + 10}">pass {number}</text>'
        )
    points = " ".join(f"{x(seconds):.1f},{y(size):.1f}" for seconds, size, _ in samples)
    parts.append(f'<polyline points="{points}" fill="none" stroke="#1a73e8" stroke-width="1.5"/>')
    parts.append(f'<text x="{WIDTH - 30}" y="{TOP + HEIGHT + 16}" text-anchor="end">{longest:.0f} s</text>')
    return "".join(parts)


def _bars(bars: Sequence[tuple[str, int]], top: int) -> str:
    longest = max(count for _, count in bars)
    parts = []
    for row, (name, count) in enumerate(bars):
        y = top + row * BAR
        width = max(1.0, count / longest * (WIDTH - 330))
        colour = "#188038" if name in {"ok", "passed"} else "#e8710a"
        parts.append(
            f'<text x="8" y="{y + 11}">{escape(name)}</text>'
            f'<rect x="220" y="{y + 2}" width="{width:.1f}" height="{BAR - 4}" fill="{colour}"/>'
            f'<text x="{226 + width:.1f}" y="{y + 11}">{count}</text>'
        )
    return "".join(parts)

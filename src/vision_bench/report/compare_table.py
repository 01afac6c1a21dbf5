"""A comparison as a table for a terminal."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from vision_bench.report.compare_words import caveats, correctness_line, head_line, p_values, ratio

Json = dict[str, Any]


def print_comparison(found: Json) -> None:
    """Print every row, the correctness, and what to keep in mind."""
    console = Console(width=None if sys.stdout.isatty() else 150, markup=False, highlight=False)
    console.print(head_line(found))
    table = Table(show_lines=False)
    for name in ("step", "number", "", "A", "B", "B / A (95 %)", "verdict", "p differs / outside", "count"):
        table.add_column(name)
    for row in found["rows"]:
        table.add_row(
            row["step"],
            row["metric"],
            row["percentile"],
            _ms(row["a"]),
            _ms(row["b"]),
            ratio(row),
            row["verdict"],
            p_values(row) or row["reason"],
            " / ".join(map(str, row["count"])),
        )
    console.print(table)
    console.print(correctness_line(found))
    for caveat in caveats(found):
        console.print(f"Mind: {caveat}")


def _ms(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1f}"

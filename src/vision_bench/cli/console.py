"""What the verbs share: progress bars and tables. Bars go to stderr, so that stdout can be piped."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def bar(label: str, total: int | None = None) -> Iterator[Any]:
    """A progress bar on stderr; the block gets a function: ``step(advance=1, total=…, note=…)``."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, note="")

        def step(advance: int = 1, **changes: Any) -> None:
            progress.update(task, advance=advance, **changes)

        yield step


def print_table(title: str, rows: list[tuple[str, str]]) -> None:
    """Two columns on stdout."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, show_header=False, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def shown_ms(value: float | None, count: int) -> str:
    """A latency with the number of values it stands on; none is ``n/a (0 samples)``."""
    return f"n/a ({count} samples)" if value is None else f"{value:,.0f} ms ({count} samples)"


def shown_bytes(size_bytes: int) -> str:
    """Bytes in the unit that a reader would choose."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"

"""Rows of Markdown tables, and numbers as they stand in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def row(cells: Sequence[str]) -> str:
    """One row."""
    return f"| {' | '.join(cells)} |"


def head(names: Sequence[str]) -> list[str]:
    """The two rows that a table begins with."""
    return [row(names), row(["---"] * len(names))]


def errors(pair: Mapping[str, float | None]) -> str:
    """p50 and p99 of reported less true."""
    return f"{number(pair['error_p50'])} / {number(pair['error_p99'])}"


def number(value: float | None, digits: int = 2) -> str:
    """With so many digits; a withheld one is said to be."""
    return "withheld" if value is None else f"{value:.{digits}f}"

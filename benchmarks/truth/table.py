"""The result for a terminal, and for docs/methodology.md: the same Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]


def show(result: Json) -> None:
    """Print it."""
    print("\n".join(lines(result)))


def lines(result: Json) -> list[str]:
    """Every table, as Markdown."""
    machine = f"{result['machine']['processors']} processors"
    text = [f"load {result['load_before']} before, {result['load_after']} after; {machine}", ""]
    if result["cells"]:
        text += _cells(result)
    for row in result["bar"]:
        met = {True: "met", False: "NOT MET", None: "not measured"}[row["is_met"]]
        text.append(f"{met:12} {row['name']}: {_number(row['measured'])} (must {row['must']:g}, aim {row['aim']:g})")
    for trap in result["traps"]:
        text += ["", f"{'right' if trap['is_right'] else 'WRONG'}: {trap['trap']}", f"  truth: {trap['truth']}"]
        text.append(f"  reported: {trap['reported']}")
        text += [f"  NOT: {check}" for check, is_right in trap["checks"].items() if not is_right]
    if result["wire"]:
        text += ["", f"wire cases: {result['wire']['right']} of {result['wire']['cases']} read rightly"]
        text += [f"  {one['case']}: {'; '.join(one['problems'])}" for one in result["wire"]["wrong"]]
    if result["ceiling"]:
        found = result["ceiling"]
        text += [
            "",
            f"one core drives {found['rate']}/s of 64-token streams with p99 lag < {found['lag_limit_ms']:g} ms",
        ]
        text += [
            f"  {one['rate']}/s: lag p99 {_number(one['lag_p99_ms'])} ms, {one['cpu_share']:.0%} of a core"
            for one in found["tried"]
        ]
    return text


def _cells(result: Json) -> list[str]:
    names = ["rate", "server", "achieved / offered", "TTFT error p50 / p99, ms", "TPOT error p50, ms", "gap CV"]
    names += ["CPU, ms a request", "PSS, MB", "connections", "verdict"]
    text = [_row(names), _row(["---"] * len(names))]
    text += [_row(_cell(cell)) for cell in result["cells"]]
    text += [_row(_floor(cell)) for cell in result["floor"]]
    return [*text, ""]


def _cell(cell: Json) -> list[str]:
    return [
        f"{cell['rate']:g} {cell['arrivals']}",
        cell["server"],
        f"{cell['achieved_over_offered']:.3f}",
        _errors(cell["ttft_ms"]),
        _number(cell["tpot_ms"]["error_p50"], 4),
        _number(cell["gap_cv"]),
        _number(cell["cpu_ms_per_request"]),
        f"{cell['peak_pss_mb']:.0f}",
        str(cell["connections"]),
        cell["verdict"],
    ]


def _floor(cell: Json) -> list[str]:
    cpu = _number(cell["cpu_ms_per_request"])
    return [f"{cell['rate']:g} constant", "floor client", "", _errors(cell), "", "", cpu, "", "", ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _errors(pair: Json) -> str:
    return f"{_number(pair['error_p50'])} / {_number(pair['error_p99'])}"


def _number(value: float | None, digits: int = 2) -> str:
    return "withheld" if value is None else f"{value:.{digits}f}"

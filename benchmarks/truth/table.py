"""The result for a terminal, and as Markdown for docs/methodology.md.

python -m benchmarks.truth.table benchmarks/truth/result.json docs/methodology.md     # fill in its tables again
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.truth import peer_table
from benchmarks.truth.rows import errors, number, row

from vision_bench.drafts import write_whole

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
    for asked in result["bar"]:
        met = {True: "met", False: "NOT MET", None: "not measured"}[asked["is_met"]]
        text.append(
            f"{met:12} {asked['name']}: {number(asked['measured'])} (must {asked['must']:g}, aim {asked['aim']:g})"
        )
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
            f"  {one['rate']}/s: lag p99 {number(one['lag_p99_ms'])} ms, {one['cpu_share']:.0%} of a core"
            for one in found["tried"]
        ]
    return text + peer_table.tables(result)


BEGIN, END = "<!-- truth: from here on written by benchmarks.truth.table -->", "<!-- truth: to here -->"


def fill(result: Json, page: Path) -> None:
    """Put the tables between the marks of a page.

    Raises:
        ValueError: the page has no marks.
    """
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{page} lacks the marks {BEGIN!r} and {END!r}")
    text = "\n".join([before + BEGIN, "", *markdown(result), "", END]) + after
    write_whole(page, text)


def markdown(result: Json) -> list[str]:
    """The tables as a page has them."""
    machine = result["machine"]
    right = sum(trap["is_right"] for trap in result["traps"])
    text = [
        f"Made on {result['when'][:10]} on {machine['processors']} processors ({machine['system']}, Python "
        f"{machine['python']}); load average {result['load_before']} before and {result['load_after']} after.",
        "",
        row(["quantity", "measured", "must", "aim", "best other tool", ""]),
        row(["---"] * 6),
    ]
    for asked in result["bar"]:
        met = {True: "met", False: "**not met**", None: "withheld"}[asked["is_met"]]
        numbers = [number(asked["measured"], 3), f"{asked['must']:g}", f"{asked['aim']:g}"]
        text.append(row([asked["name"], *numbers, asked["best_peer"], met]))
    text += ["", *_cells(result)]
    text.append(
        f"Traps told rightly: {right} of {len(result['traps'])} ({', '.join(t['trap'] for t in result['traps'])})."
    )
    text += [
        f"Not right: {trap['trap']}: {', '.join(what for what, holds in trap['checks'].items() if not holds)}."
        for trap in result["traps"]
        if not trap["is_right"]
    ]
    if result["wire"]:
        text.append(f"Wire cases read rightly: {result['wire']['right']} of {result['wire']['cases']}.")
    if result["ceiling"]:
        text.append(
            f"One core drives {result['ceiling']['rate']} streams of 64 tokens a second with p99 lag under 5 ms."
        )
    return text + peer_table.tables(result)


def _cells(result: Json) -> list[str]:
    names = ["rate", "server", "achieved / offered", "TTFT error p50 / p99, ms", "TPOT error p50, ms", "gap CV"]
    names += ["CPU, ms a request", "PSS, MB", "connections", "verdict"]
    text = [row(names), row(["---"] * len(names))]
    text += [row(_cell(cell)) for cell in result["cells"]]
    text += [row(_floor(cell)) for cell in result["floor"]]
    return [*text, ""]


def _cell(cell: Json) -> list[str]:
    return [
        f"{cell['rate']:g} {cell['arrivals']}",
        cell["server"],
        f"{cell['achieved_over_offered']:.3f}",
        errors(cell["ttft_ms"]),
        number(cell["tpot_ms"]["error_p50"], 4),
        number(cell["gap_cv"]),
        number(cell["cpu_ms_per_request"]),
        f"{cell['peak_pss_mb']:.0f}",
        str(cell["connections"]),
        cell["verdict"],
    ]


def _floor(cell: Json) -> list[str]:
    cpu = number(cell["cpu_ms_per_request"])
    return [f"{cell['rate']:g} constant", "floor client", "", errors(cell), "", "", cpu, "", "", ""]


if __name__ == "__main__":
    fill(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))

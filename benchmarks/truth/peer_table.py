"""Other tools beside ours, as Markdown: the cells, the traps, and what could not be measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.truth import traps
from benchmarks.truth.rows import errors, head, number, row

Json = dict[str, Any]

OURS = "vision-bench run"
_OF_OURS = {"tool": OURS, "processes": 1}


def tables(result: Json) -> list[str]:
    """Nothing when the run had no other tool."""
    peers = result.get("peers")
    if not peers:
        return []
    text: list[str] = []
    if peers["cells"]:
        text += ["", *_cells(result["cells"], peers["cells"])]
    if peers["traps"]:
        text += ["", *_traps(result["traps"], peers)]
    if peers["failed"]:
        text += ["", "Not measured:", ""]
        text += [f"- {one['tool']}, {one['what']}: {' '.join(one['reason'].split())}" for one in peers["failed"]]
    return text


def _cells(ours: list[Json], theirs: list[Json]) -> list[str]:
    names = ["rate", "tool", "achieved / offered", "accounted for / due", "TTFT error p50 / p99, ms"]
    names += ["TPOT error p50, ms", "gap CV", "CPU, ms a request (whole life)", "PSS, MB", "processes", "connections"]
    text = head(names)
    for rate in sorted({cell["rate"] for cell in theirs}):
        for cell in ours:
            if (cell["rate"], cell["arrivals"], cell["server"]) == (rate, "constant", "lean"):
                text.append(
                    _cell(cell | _OF_OURS | {"accounted_for": cell["due"], "connections": cell["connections_whole"]})
                )
        text += [_cell(cell) for cell in theirs if cell["rate"] == rate]
    return text


def _cell(cell: Json) -> str:
    cpu = f"{number(cell['cpu_ms_per_request'], 1)} ({number(cell['cpu_ms_per_request_whole'], 1)})"
    return row(
        [
            f"{cell['rate']:g}",
            cell["tool"],
            f"{cell['achieved_over_offered']:.3f}",
            f"{cell['accounted_for']} / {cell['due']}",
            errors(cell["ttft_ms"]),
            number(cell["tpot_ms"]["error_p50"], 4),
            number(cell["gap_cv"]),
            cpu,
            f"{cell['peak_pss_mb']:.0f}",
            str(cell["processes"]),
            str(cell["connections"]),
        ]
    )


def _traps(ours: list[Json], peers: Json) -> list[str]:
    tools = [one["tool"] for one in peers["tools"]]
    text = head(["trap", OURS, *tools])
    for trap, words in _WORDS.items():
        own = next((one for one in ours if one["trap"] == trap), None)
        cells = ["not run" if own is None else _verdict(own)]
        for tool in tools:
            found = next((one for one in peers["traps"] if (one["trap"], one["tool"]) == (trap, tool)), None)
            cells.append("no result" if found is None else f"{_verdict(found)}; {words(found['reported'])}")
        text.append(row([trap, *cells]))
    return text


def _verdict(trap: Json) -> str:
    missed = [check for check, is_right in trap["checks"].items() if not is_right]
    return f"**not**: {'; '.join(missed)}" if missed else "right"


_WORDS: dict[str, Callable[[Json], str]] = {
    traps.ROLE: lambda told: f"TTFT {number(told['ttft_p50_ms'])} ms, {number(told['tpot_p50_ms'])} ms a token",
    traps.STALL: lambda told: (
        ("no gaps" if told["gap_p99_ms"] is None else f"gap p99 {number(told['gap_p99_ms'], 0)} ms")
        + f", TPOT {number(told['tpot_p50_ms'])} ms"
    ),
    traps.FREEZE: lambda told: (
        f"{told['seen_by_server']} of {told['due']} sent, latency p90 {number(told['latency_p90_ms'], 0)} ms"
    ),
    traps.BIG: lambda told: (
        f"TTFT error p50 {number(told['ttft_error_p50_ms'])} ms, CPU {number(told['cpu_ms_per_request'], 1)} ms"
    ),
    traps.OVERLOAD: lambda told: (
        f"{told['ok']} of {told['due']}, TTFT p50 {number(told['ttft_p50_ms'], 0)} ms, {number(told['rate'])}/s"
    ),
}

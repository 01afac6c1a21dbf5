"""How a comparison is put into words, in a terminal and on a page alike."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CORRECTNESS = {
    "correct": "answered right",
    "valid": "kept to the schema",
}


def head_line(found: Json) -> str:
    """Who is held against whom, and under which rules."""
    a, b = found["a"], found["b"]
    counts = ", ".join(f"{count} {name}" for name, count in found["verdicts"].items() if count)
    return (
        f"B ({b['model']} at {b['target']}) against A ({a['model']} at {a['target']}), media {a['media']}, region "
        f"{a['region'] or 'not told'}: {counts}. Equivalent is within {found['margin']:.1%}; {found['family']} tests, "
        f"{1 - found['confidence']:.0%} for all of them together (Holm), {found['resamples']} resamples of blocks."
    )


def ratio(row: Json) -> str:
    """``1.043 [1.021, 1.066]``."""
    if row["interval"] is None:
        return "n/a"
    ends = ["∞" if end is None else f"{end:.3f}" for end in row["interval"]]
    return f"{'n/a' if row['ratio'] is None else format(row['ratio'], '.3f')} [{', '.join(ends)}]"


def p_values(row: Json) -> str:
    """Both, adjusted; empty where nothing was tested."""
    return "" if row["p_differs"] is None else f"{row['p_differs']:.3g} / {row['p_outside']:.3g}"


def correctness_line(found: Json) -> str:
    """What McNemar's test says."""
    told = found["correctness"]
    if told is None:
        return "Correctness: nothing was checked in both runs."
    what = CORRECTNESS[told["measure"]]
    return (
        f"Correctness: {told['verdict']} (McNemar, p {told['p']:.3g}). Of {told['count']} first answers: "
        f"{told['both']} {what} in both, {told['only_a']} in A alone, {told['only_b']} in B alone, {told['neither']} "
        "in neither."
    )


def caveats(found: Json) -> list[str]:
    """What a reader must keep in mind before believing the rows."""
    said = [f"different: {each}" for each in found["differences"]]
    if not found["is_interleaved"]:
        said.append(
            "the runs were made one after the other: whatever changed in between is in the difference; "
            "run --against measures both in turn"
        )
    if any(not row["is_paired"] for row in found["rows"]):
        said.append("in some steps the requests are not the same ones in both runs and were not compared one by one")
    for arm in ("a", "b"):
        doubtful = [f"{name} {verdict}" for name, verdict in found[arm]["steps"].items() if verdict != "STABLE"]
        if doubtful:
            said.append(
                f"{arm.upper()} was not STABLE in: {', '.join(doubtful)}; a latency under overload tells how long the "
                "step was, one of a limited client is the client's"
            )
        if not found[arm]["is_complete"]:
            said.append(f"{arm.upper()} was cut off")
    return said

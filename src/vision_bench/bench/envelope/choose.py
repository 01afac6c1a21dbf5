"""Which envelope is the smallest that is good enough, and what cannot be trusted in the figures. Arithmetic alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from vision_bench.bench.choice import AXES

Json = dict[str, Any]


def size_of(row: Mapping[str, Any]) -> tuple[float, float]:
    """What a request costs: prompt tokens as the server counts them, then bytes; without counts, bytes alone."""
    tokens = row["prompt_tokens"]
    return (math.inf if tokens is None else tokens, row["request_bytes"] or math.inf)


def choose(rows: Sequence[Mapping[str, Any]], threshold: float, *, is_sure: bool = False) -> list[Mapping[str, Any]]:
    """For each model the smallest envelope whose accuracy reaches the threshold; a model without one has no row.

    Args:
        is_sure: the lower end of the accuracy's interval has to reach it.
    """
    chosen = []
    for model in dict.fromkeys(row["model"] for row in rows):
        good = [row for row in rows if row["model"] == model and _reaches(row, threshold, is_sure=is_sure)]
        if good:
            chosen.append(min(good, key=size_of))
    return chosen


def _reaches(row: Mapping[str, Any], threshold: float, *, is_sure: bool) -> bool:
    accuracy = row["accuracy"]
    if accuracy is None or not row["is_complete"]:
        return False
    value = accuracy["interval"][0] if is_sure else accuracy["share"]
    return bool(value >= threshold)


def flags(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader must know before believing the table."""
    found = [
        f"{row['words']}: {row['requests']['failed']} of {row['requests']['due']} requests failed and count as wrong"
        for row in rows
        if row["requests"]["failed"]
    ]
    found += [f"{row['words']}: not all of it has run" for row in rows if not row["is_complete"]]
    told = [row for row in rows if row["prompt_tokens"] is not None]
    if len(told) < len(rows):
        found.append("the server tells no prompt tokens: envelopes are ordered by the bytes of a request")
    found += _same_bytes(rows)
    found += _same_tokens(told)
    return found


def _same_bytes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Envelopes that sent the very same requests: the clips have no more lines or seconds to give."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row["bodies"])].append(row)
    return [
        f"{' and '.join(row['words'] for row in group)} sent the very same requests: the clips hold no more"
        for group in groups.values()
        if len(group) > 1
    ]


def _same_tokens(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """An axis along which the prompt does not grow: the server did not heed it, or had its own bounds."""
    found = []
    for axis in AXES:
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            others = tuple(row["envelope"].get(key) for key in AXES if key != axis)
            groups[(row["model"], *others)].append(row)
        sets = [group for group in groups.values() if len({row["envelope"].get(axis) for row in group}) > 1]
        if sets and all(len({row["prompt_tokens"] for row in group}) == 1 for group in sets):
            values = ", ".join(_shown(row["envelope"].get(axis)) for row in sets[0])
            found.append(
                f"{axis} does not change the prompt's tokens ({values}: {sets[0][0]['prompt_tokens']:g} each): the "
                "server did not heed it, so what it costs and gives cannot be told from this study"
            )
    return found


def _shown(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

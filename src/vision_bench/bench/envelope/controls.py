"""Controls: does the model see, does it hear? The same clips with black pictures, and with silence for sound.

What only the picture shows must be lost with the picture and with nothing else, and so for the sound. Each pair of arms
is the same facts asked twice, held against each other by McNemar's exact test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vision_bench.bench.accuracy import pair
from vision_bench.significance import mcnemar

Json = dict[str, Any]
Outcomes = Mapping[tuple[int, str], tuple[bool, str | None]]
"""By place of the request and name of the fact: whether it was right, and the sense that it needs."""

ALPHA = 0.05
REMOVES = {"blackout": "picture", "muted": "sound"}
_SENSES = ("picture", "sound")


def judge_control(control: str, normal: Outcomes, arm: Outcomes) -> Json:
    """One control against the arm with picture and sound.

    Returns:
        ``verdict``: ``PASS``; ``FAIL`` when facts of the sense that was taken away are as right as before (the model
        did not use it), or facts of the other one are not; ``UNDETERMINED`` when there are too few facts to tell;
        ``reason``; and for each sense the counts and McNemar's p.
    """
    removed = REMOVES[control]
    senses = {sense: _compare(normal, arm, sense) for sense in _SENSES}
    lost, kept = senses[removed], senses[_SENSES[1 - _SENSES.index(removed)]]
    verdict, reason = _verdict(control, removed, lost, kept)
    return {"control": control, "verdict": verdict, "reason": reason, "senses": senses}


def _compare(normal: Outcomes, arm: Outcomes, sense: str) -> Json:
    first = {key: is_right for key, (is_right, needs) in normal.items() if needs == sense}
    second = {key: is_right for key, (is_right, needs) in arm.items() if needs == sense}
    counts = pair(first, second)
    return {
        "facts": sum(counts),
        "right": counts.both + counts.only_first,
        "right_in_control": counts.both + counts.only_second,
        "lost": counts.only_first,
        "gained": counts.only_second,
        "p": round(mcnemar(counts.only_first, counts.only_second), 6),
    }


def _verdict(control: str, removed: str, lost: Json, kept: Json) -> tuple[str, str]:
    if not lost["facts"]:
        return "UNDETERMINED", f"no label says that it is of the {removed}; give labels a sense"
    other = _SENSES[1 - _SENSES.index(removed)]
    if kept["p"] <= ALPHA and kept["lost"] > kept["gained"]:
        return "FAIL", (
            f"{kept['lost']} of {kept['right']} right facts of the {other} were lost with the {removed}: "
            f"{control} changed what it must not"
        )
    if lost["lost"] > lost["gained"] and lost["p"] <= ALPHA:
        return "PASS", f"{lost['lost']} of {lost['right']} right facts of the {removed} were lost with it"
    told = f"{lost['lost']} of {lost['right']} right facts of the {removed} were lost with it, {lost['gained']} gained"
    if lost["lost"] <= lost["gained"] and mcnemar(lost["right"], 0) <= ALPHA:
        return "FAIL", f"{told}: it is not used"
    return "UNDETERMINED", f"{told}: too few to tell; give more clips"

"""One run as an arm of a comparison: the numbers of each request in the order in which they were due."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vision_bench.bench.chat.numbers import NUMBER_OF, SCHEDULED
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.scoring import Scoring
from vision_bench.bench.record import OK
from vision_bench.bench.rundir import read_manifest, read_records
from vision_bench.bench.summary import summarise_folder
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]
Series = list[float | None]

KIND = "chat"


@dataclass(slots=True)
class ArmStep:
    """One step, its rounds one behind the other.

    Attributes:
        verdict: on the load; of several rounds the one that is worst to rely on.
        items: what each request sent; None for one whose record is lost.
        values: by name: infinite where a scheduled number never came, None where a request has no such number.
    """

    verdict: str
    items: list[str | None] = field(default_factory=list)
    values: dict[str, Series] = field(default_factory=dict)


@dataclass(slots=True)
class Arm:
    """One run. ``correct``: by item, whether the first answer about it was; ``valid``: the same by body."""

    manifest: Json
    summary: Json
    steps: dict[str, ArmStep]
    correct: dict[str, bool]
    valid: dict[str, bool]

    def facts(self) -> Json:
        """What a comparison says of it."""
        return {
            "run_id": self.summary["run_id"],
            "started_at": self.summary["started_at"],
            "target": self.summary["target"],
            "workload": self.summary["workload"],
            **self.manifest["labels"],
            "is_complete": self.summary["is_complete"],
            "steps": {name: step.verdict for name, step in self.steps.items()},
        }


_WORST_FIRST = ("CLIENT-LIMITED", "UNDETERMINED", "SATURATED", "STABLE")


def read_arm(path: Path, metrics: Sequence[str]) -> Arm:
    """Read a run folder.

    Args:
        metrics: names of the numbers that are kept.

    Raises:
        InvalidRequest: no run folder, or one of another kind than chat.
    """
    manifest = read_manifest(path)
    if manifest.get("kind") != KIND:
        raise InvalidRequest(f"{path} is a run of kind {manifest.get('kind')!r}; chat runs are compared")
    summary = summarise_folder(path)
    arm = Arm(manifest, summary, {}, {}, {})
    places = _lay_out(summary, arm, metrics, streams=manifest["workload"]["streams"])
    scoring = Scoring.of_manifest(manifest["workload"])
    first: dict[str, int] = {}
    for record in read_records(path, ChatRecord):
        place = places.get(record.step)
        if place is None:  # warming up, or an attempt that was cut off
            continue
        step, offset = place
        _fill(step, offset + record.index, record, metrics)
        _note_answers(arm, record, scoring, first)
    return arm


def _lay_out(summary: Json, arm: Arm, metrics: Sequence[str], *, streams: bool) -> dict[int, tuple[ArmStep, int]]:
    """Room for every request that was due, as if none had been answered; where each step number's begins."""
    places = {}
    for told in sorted(summary["steps"], key=lambda told: told["round"]):
        step = arm.steps.setdefault(told["name"], ArmStep(told["verdict"]))
        step.verdict = min(step.verdict, told["verdict"], key=_WORST_FIRST.index)
        places[told["step"]] = (step, len(step.items))
        due = told["requests"]["due"]
        step.items += [None] * due
        for name in metrics:
            never = math.inf if name in SCHEDULED and (streams or name != "scheduled_ttft_ms") else None
            step.values.setdefault(name, []).extend([never] * due)
    return places


def _fill(step: ArmStep, place: int, record: ChatRecord, metrics: Sequence[str]) -> None:
    step.items[place] = f"{record.item} {record.body_sha256}"
    if record.outcome == OK:
        for name in metrics:
            step.values[name][place] = NUMBER_OF[name](record)


def _note_answers(arm: Arm, record: ChatRecord, scoring: Scoring | None, first: dict[str, int]) -> None:
    """Keep what the first answer was worth: to each body, and about each item; later ones are not independent."""
    body = record.body_sha256 or record.item or ""
    if record.is_valid is not None and _is_first(first, f"body {body}", record):
        arm.valid[body] = record.is_valid
    for scored in scoring.of_record(record) if scoring is not None else ():
        if _is_first(first, f"item {scored.item}", record):
            arm.correct[scored.item] = scored.is_correct


def _is_first(first: dict[str, int], key: str, record: ChatRecord) -> bool:
    """Whether no request of a lower place in the run has been seen under ``key``; records come as they end."""
    if first.setdefault(key, record.ordinal) < record.ordinal:
        return False
    first[key] = record.ordinal
    return True

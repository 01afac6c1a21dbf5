"""How fresh answers about live streams are: age at use, age of information over time, deadlines, sustained cameras.

Age of information: at any moment, how long ago the newest frame was there that has been answered. It grows with time
and falls when an answer comes; an answer about a frame older than one already answered does not lower it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vision_bench.bench.cameras import CameraLoad
from vision_bench.bench.column import column
from vision_bench.bench.record import DROPPED, OK
from vision_bench.bench.verdict import FEWEST, MAX_FAILED, Evidence, Verdict, client_limit
from vision_bench.stats import Interval, wilson_interval

Json = dict[str, Any]

MAX_MISSED = 0.05
"""Cameras are sustained where the upper end of the interval of missed frames is at most this."""


class Frame(NamedTuple):
    """A frame of a camera, ns from the start of the step. ``usable_ns``: its answer could be used; None, never."""

    camera: int
    due_ns: int
    usable_ns: int | None


@dataclass
class Freshness:
    """Add the frames of one step, then ``summary``."""

    load: CameraLoad
    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    on_time: int = 0
    ages_ms: list[float] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)

    def add(self, frame: Frame, outcome: str) -> None:
        """Take one frame in."""
        self.outcomes[outcome] += 1
        if outcome == OK and frame.usable_ns is not None:
            age_ns = frame.usable_ns - frame.due_ns
            self.ages_ms.append(age_ns / 1e6)
            self.on_time += age_ns <= self.load.deadline_ns
            self.frames.append(frame)

    def missed(self, due: int) -> tuple[int, Interval | None]:
        """Frames without a usable answer within the deadline, for whatever reason, and the interval of their share."""
        return due - self.on_time, wilson_interval(due - self.on_time, due)

    def summary(self, due: int, window_ns: int) -> Json:
        """As it stands in the summary. Ages in ms; nothing answered is no data, not 0."""
        missed, interval = self.missed(due)
        mean_ms, peaks_ms = age_of_information(self.frames, window_ns)
        answered = len(self.ages_ms)
        seconds = window_ns / 1e9
        return {
            "cameras": self.load.count,
            "period_ms": self.load.period_ns / 1e6,
            "drop": self.load.drop,
            "deadline_ms": self.load.deadline_ns / 1e6,
            "frames": {
                "due": due,
                "answered": answered,
                "late": answered - self.on_time,
                "dropped": self.outcomes.get(DROPPED, 0),
                "failed": due - answered - self.outcomes.get(DROPPED, 0),
            },
            "missed": missed,
            "miss_ratio": round(missed / due, 6) if due else None,
            "miss_interval": None if interval is None else [round(end, 6) for end in interval],
            "age_at_use_ms": column(self.ages_ms),
            "age_of_information_ms": {"mean": mean_ms, "peaks": column(peaks_ms)},
            "updates_per_second": round(answered / seconds / self.load.count, 6) if seconds else None,
            "is_sustained": interval is not None and interval.high <= MAX_MISSED,
        }


def age_of_information(frames: Iterable[Frame], window_ns: int) -> tuple[float | None, list[float]]:
    """Mean over time, and every age just before an answer lowered it, ms.

    Over each camera from its first answer to the end of the window: before the first answer there is no information
    whose age could be told.
    """
    of_camera: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for frame in frames:
        if frame.usable_ns is not None:
            of_camera[frame.camera].append((frame.usable_ns, frame.due_ns))
    area, span, peaks = 0.0, 0, []
    for answers in of_camera.values():
        answers.sort()
        at_ns, newest_ns = answers[0]
        for usable_ns, due_ns in [*answers[1:], (window_ns, -1)]:
            until_ns = min(usable_ns, window_ns)
            if until_ns > at_ns:
                area += (until_ns - at_ns) * ((at_ns - newest_ns) + (until_ns - newest_ns)) / 2.0
                span += until_ns - at_ns
                at_ns = until_ns
            if due_ns > newest_ns:
                peaks.append((usable_ns - newest_ns) / 1e6)
                newest_ns = due_ns
    return (round(area / span / 1e6, 6) if span else None), peaks


def judge_cameras(evidence: Evidence, freshness: Freshness) -> Verdict:
    """The verdict on a step of cameras: whether the share of missed frames is shown to be small, or not to be."""
    due = evidence.due
    missed, interval = freshness.missed(due)
    if not evidence.is_complete:
        return Verdict("UNDETERMINED", "the step was cut off before its end")
    if due < FEWEST or interval is None:
        return Verdict("UNDETERMINED", f"{due} frames, {FEWEST} needed; raise --duration")
    load, dropped = freshness.load, freshness.outcomes.get(DROPPED, 0)
    said = f"{missed} of {due} frames had no answer within {load.deadline_ns / 1e6:g} ms"
    said += f" ({dropped} of them dropped)" if dropped else ""
    failed = due - evidence.ok - dropped
    has_failed = failed > MAX_FAILED * due
    if interval.low > MAX_MISSED and not has_failed and evidence.lag_p99_ms < evidence.response_p50_ms / 10:
        return Verdict("SATURATED", said)
    if limited := client_limit(evidence):
        return Verdict("CLIENT-LIMITED", limited)
    if has_failed:
        return Verdict("UNDETERMINED", f"{failed} of {due} failed ({evidence.failures})")
    if evidence.doubts:
        return Verdict("UNDETERMINED", "; ".join(evidence.doubts))
    if interval.high <= MAX_MISSED:
        return Verdict("STABLE", f"{load.count} camera{'s' * (load.count > 1)} sustained: {said}")
    return Verdict("UNDETERMINED", f"{said}: about {MAX_MISSED:.0%}; run longer to tell")


def sustained(steps: Sequence[Mapping[str, Any]]) -> Json | None:
    """The largest number of cameras that a run sustained, and the smallest it did not; None without cameras."""
    told = [step for step in steps if step.get("live")]
    if not told:
        return None
    held = [step["live"]["cameras"] for step in told if step["verdict"] == "STABLE"]
    failed = [step["live"]["cameras"] for step in told if step["verdict"] == "SATURATED"]
    most = max(held, default=None)
    above = [count for count in failed if count > (-math.inf if most is None else most)]
    return {"cameras": most, "failed_at": min(above, default=None), "max_missed": MAX_MISSED}

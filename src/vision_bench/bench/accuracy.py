"""Right and wrong facts to shares with intervals. Facts of one clip stand or fall together, so clips are what counts.

A share's interval is Wilson's at the effective sample size (Kish): as many independent facts as would vary as much as
the clips do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vision_bench.stats import Interval, wilson_interval

Json = dict[str, Any]
_DIGITS = 6


class Mark(NamedTuple):
    """One fact of one answer.

    Attributes:
        value: of the scorer; None where there was no answer to score.
        sense: what it takes to know the fact, ``picture`` or ``sound``.
    """

    fact: str
    scorer: str
    value: float | None
    is_right: bool
    sense: str | None = None


@dataclass(slots=True)
class _Count:
    """By clip: right facts, asked facts, answers that they stand in. And the scorer's values."""

    scorer: str = ""
    clips: dict[str, list[int]] = field(default_factory=dict)
    total: float = 0.0
    valued: int = 0

    def add(self, clip: str, right: int, asked: int) -> None:
        counts = self.clips.setdefault(clip, [0, 0, 0])
        counts[0] += right
        counts[1] += asked
        counts[2] += 1

    def shares(self) -> Json:
        right, asked = (sum(counts[place] for counts in self.clips.values()) for place in (0, 1))
        # A clip that is asked again proves nothing new: its answers count as one, their mean.
        once = [(right / answers, asked / answers) for right, asked, answers in self.clips.values()]
        interval = clustered_interval(once)
        return {
            "count": asked,
            "right": right,
            "share": round(right / asked, _DIGITS) if asked else None,
            "interval": None if interval is None else [round(end, _DIGITS) for end in interval],
        }


class AccuracyTally:
    """Add the marks of one answer after the other, then ``summary``. Memory is clips times facts."""

    def __init__(self) -> None:
        self._facts = _Count()
        self._answers = _Count()
        self._by_fact: dict[str, _Count] = {}
        self._by_sense: dict[str, _Count] = {}

    def add(self, clip: str, marks: Sequence[Mark]) -> None:
        """The facts that one answer about ``clip`` was asked for; a request without an answer got them all wrong."""
        if not marks:
            return
        for mark in marks:
            count = self._by_fact.setdefault(mark.fact, _Count(mark.scorer))
            count.add(clip, mark.is_right, 1)
            if mark.value is not None:
                count.total += mark.value
                count.valued += 1
        for sense in {mark.sense for mark in marks if mark.sense is not None}:
            needing = [mark.is_right for mark in marks if mark.sense == sense]
            self._by_sense.setdefault(sense, _Count()).add(clip, sum(needing), len(needing))
        right = sum(mark.is_right for mark in marks)
        self._facts.add(clip, right, len(marks))
        self._answers.add(clip, right == len(marks), 1)

    def summary(self) -> Json | None:
        """As in summary.json: over facts, over whole answers, by fact; None where nothing was asked."""
        if not self._facts.clips:
            return None
        return {
            **self._facts.shares(),
            "clips": len(self._facts.clips),
            "answers": self._answers.shares(),
            "by_sense": {sense: count.shares() for sense, count in sorted(self._by_sense.items())},
            "by_fact": {
                name: {"scorer": count.scorer, **count.shares(), "mean_value": _mean(count)}
                for name, count in sorted(self._by_fact.items())
            },
        }


def _mean(count: _Count) -> float | None:
    return round(count.total / count.valued, _DIGITS) if count.valued else None


def clustered_interval(clusters: Iterable[tuple[float, float]]) -> Interval | None:
    """95 % interval of a share whose trials come in clusters.

    Args:
        clusters: (right, asked) of each.

    Returns:
        None without a trial.
    """
    pairs = [(right, asked) for right, asked in clusters if asked]
    right, asked = math.fsum(pair[0] for pair in pairs), math.fsum(pair[1] for pair in pairs)
    if not asked:
        return None
    share = right / asked
    effective = _effective_count(pairs, asked)
    return wilson_interval(share * effective, effective)


def _effective_count(pairs: list[tuple[float, float]], asked: float) -> float:
    """Independent trials that would vary as the clusters do: of a ratio, linearised; 1 to ``asked``.

    The spread is taken with one more cluster of mean size that is half right. Without it clusters that are all right
    would have none, and a set without a mistake would be less certain than one with a single mistake.
    """
    if len(pairs) == 1:
        return 1.0
    mean = asked / len(pairs)
    known = [*pairs, (mean / 2, mean)]
    share = sum(right for right, _ in known) / (asked + mean)
    spread = sum((right - share * of) ** 2 for right, of in known)
    variance = len(known) / (len(known) - 1) * spread / (asked + mean) ** 2
    if variance == 0.0:  # every cluster is half right
        return float(asked)
    return min(float(asked), max(1.0, share * (1.0 - share) / variance))


class Pairing(NamedTuple):
    """The same facts asked twice: how many only the first, and only the second, got right."""

    only_first: int
    only_second: int
    both: int
    neither: int


def pair(first: Mapping[Any, bool], second: Mapping[Any, bool]) -> Pairing:
    """Two arms' outcomes by key; a key that one arm lacks is in no count."""
    shared = first.keys() & second.keys()
    only_first = sum(first[key] and not second[key] for key in shared)
    only_second = sum(second[key] and not first[key] for key in shared)
    both = sum(first[key] and second[key] for key in shared)
    return Pairing(only_first, only_second, both, len(shared) - only_first - only_second - both)

"""One pass over a chat run's records: distributions, a timeline, the worst requests. Memory does not grow with them."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.record import OK, RUNNING
from vision_bench.report.figures import Distribution

Json = dict[str, Any]

BINS = 120
"""Of a step's window in the timeline."""
WORST = 8
"""Slowest answers that are shown, and as many failures."""

OVER_DUE: Mapping[str, Callable[[ChatRecord], float | None]] = {
    "scheduled_ttft_ms": formulas.scheduled_ttft_ms,
    "response_ms": formulas.response_ms,
}


@dataclass
class Timeline:
    """What was going on in a step, in equal parts of its window: requests that came due, ended, and how.

    Attributes:
        bin_ns: length of a part.
    """

    start_ns: int
    bin_ns: int
    due: Counter[int] = field(default_factory=Counter)
    ended: Counter[int] = field(default_factory=Counter)
    outcomes: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, record: ChatRecord) -> None:
        """Take one request in."""
        self.due[self._bin(record.due_ns)] += 1
        end_ns = record.end_ns if record.outcome == OK and record.end_ns is not None else record.stop_ns
        if record.outcome != RUNNING and end_ns is not None:
            self.ended[self._bin(end_ns)] += 1
            self.outcomes[record.outcome or ""][self._bin(end_ns)] += 1

    def _bin(self, at_ns: int) -> int:
        return max(0, (at_ns - self.start_ns) // self.bin_ns)

    @property
    def bins(self) -> int:
        """Number of parts, the last one in which something came or ended included."""
        return max((*self.due, *self.ended, BINS - 1)) + 1

    def in_flight(self) -> list[int]:
        """Requests due and not over at the end of each part."""
        moves = (self.due[number] - self.ended[number] for number in range(self.bins))
        return list(itertools.accumulate(moves))


@dataclass
class StepView:
    """What a page shows of one step beside its summary."""

    timeline: Timeline
    distributions: dict[str, Distribution] = field(default_factory=lambda: defaultdict(Distribution))

    def add(self, record: ChatRecord) -> None:
        """Take one request in; the same ones are in a distribution as are in the column of that name."""
        self.timeline.add(record)
        for name, number in OVER_DUE.items():
            value = number(record) if record.outcome == OK else math.inf
            if value is not None:
                self.distributions[name].add(value)
        if record.outcome == OK:
            ttft_ms = formulas.ttft_ms(record)
            if ttft_ms is not None:
                self.distributions["ttft_ms"].add(ttft_ms)
            for gap_ms in formulas.gaps_ms(record):
                self.distributions["icl_ms"].add(gap_ms)


@dataclass
class Worst:
    """The slowest good answers, and failures: of each reason in turn, so that a common one hides no rare one."""

    count: int = WORST
    _slowest: list[tuple[float, int, ChatRecord]] = field(default_factory=list)
    _failed: dict[str, list[ChatRecord]] = field(default_factory=lambda: defaultdict(list))

    def add(self, record: ChatRecord) -> None:
        """Take one request in."""
        if record.outcome != OK:
            kept = self._failed[f"{record.outcome} {record.status}"]
            if len(kept) < self.count:
                kept.append(record)
            return
        response_ms = formulas.response_ms(record)
        if response_ms is not None:
            heapq.heappush(self._slowest, (response_ms, record.ordinal, record))
            if len(self._slowest) > self.count:
                heapq.heappop(self._slowest)

    def slowest(self) -> list[ChatRecord]:
        """The slowest first."""
        return [record for _, _, record in sorted(self._slowest, reverse=True, key=lambda entry: entry[:2])]

    def failed(self) -> list[ChatRecord]:
        """One of each reason, then a second of each."""
        turns = itertools.zip_longest(*self._failed.values())
        return [record for turn in turns for record in turn if record is not None][: self.count]


@dataclass(frozen=True, slots=True)
class RunView:
    """All of it."""

    steps: Mapping[int, StepView]
    worst: Worst


def view_records(records: Iterable[ChatRecord], windows: Mapping[int, tuple[int, int]]) -> RunView:
    """Read the records once.

    Args:
        windows: of each step that is shown: its start and its length, ns. Records of other steps are warm-up.
    """
    steps = {
        step: StepView(Timeline(start_ns, max(1, math.ceil(window_ns / BINS))))
        for step, (start_ns, window_ns) in windows.items()
    }
    worst = Worst()
    for record in records:
        view = steps.get(record.step)
        if view is not None:
            view.add(record)
            worst.add(record)
    return RunView(steps, worst)


def coarser(counts: Sequence[float], most: int) -> list[float]:
    """Sums of equally many neighbours, so that at most ``most`` are left."""
    width = math.ceil(len(counts) / most)
    return [math.fsum(counts[start : start + width]) for start in range(0, len(counts), width)]

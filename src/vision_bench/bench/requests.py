"""What any kind says of a step's requests: how many, how they ended, rates, the number in flight, the verdict.

A kind adds its own numbers beside these, under names of its own, in the same :class:`Samples`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from vision_bench.bench.record import DROPPED, OK, RUNNING, UNSENT, Record
from vision_bench.bench.samples import Samples
from vision_bench.bench.verdict import Evidence, Flow, Span, Verdict, flow_of, judge
from vision_bench.stats import percentile

Json = dict[str, Any]

LOST = "lost"
"""Outcome of an arrival whose record a killed run took with it."""
LAG, RESPONSE = "lag_ms", "response_ms"
"""The two numbers that a verdict needs."""
SHOWN_FAILURES = 5


@dataclass(frozen=True, slots=True)
class Window:
    """What a step was meant to be, and what the driver knows of it."""

    start_ns: int
    window_ns: int
    is_complete: bool
    offered_rate: float | None
    due: int | None
    mean_in_flight: float = 0.0
    loop_lag_p99_ms: float = 0.0
    cpu_share: float = 0.0

    @classmethod
    def of(cls, begin: Json, end: Json | None, last_ns: int) -> Self:
        """From a step's lines; ``last_ns`` stands for the end of a step that was killed."""
        if end is None:  # what the driver knew is gone, the records are not
            start_ns = begin["begin_ns"]
            end = {"start_ns": start_ns, "window_ns": max(last_ns - start_ns, 1)}
        return cls(
            start_ns=end["start_ns"],
            window_ns=end["window_ns"],
            is_complete=bool(end.get("is_complete")),
            offered_rate=begin["offered_rate"],
            due=end.get("due"),
            mean_in_flight=end.get("mean_in_flight", 0.0),
            loop_lag_p99_ms=end.get("loop_lag_p99_ms") or 0.0,
            cpu_share=end.get("cpu_share", 0.0),
        )

    @property
    def seconds(self) -> float:
        """How long arrivals were due."""
        return self.window_ns / 1e9


class Requests:
    """Add a step's records one by one, then ``close``.

    Args:
        window: the step.
        scheduled: names of the numbers that are counted from the due time, over everything that was due. A kind puts
            those that it has beside the response in itself, with ``put_scheduled``.
    """

    def __init__(self, window: Window, scheduled: Sequence[str] = (RESPONSE,)) -> None:
        self.window = window
        self.samples = Samples()
        self._scheduled = scheduled
        self._outcomes: Counter[str] = Counter()
        self._details: Counter[tuple[str, str]] = Counter()
        self._spans: list[Span] = []
        self._count = 0
        self._last_index = -1

    def add(self, record: Record, end_ns: int | None, answered_ns: int | None = None) -> None:
        """Take one record in.

        Args:
            record: what was kept of it.
            end_ns: when a good one was over, and its place in the system free.
            answered_ns: when a good one's answer was there, for a kind in which that is before its end.
        """
        self._count += 1
        self._last_index = max(self._last_index, record.index)
        outcome = record.outcome or RUNNING
        self._outcomes[outcome] += 1
        if outcome not in (OK, DROPPED):
            self._details[outcome, record.detail or ""] += 1
        over_ns = end_ns if outcome == OK and end_ns is not None else record.stop_ns
        ended = None if outcome == RUNNING or over_ns is None else over_ns - self.window.start_ns
        self._spans.append(Span(record.due_ns - self.window.start_ns, ended, outcome == OK))
        if record.dsp_ns is not None:
            self.samples.put(LAG, (record.dsp_ns - record.due_ns) / 1e6)
        there_ns = over_ns if answered_ns is None else answered_ns
        self.put_scheduled(RESPONSE, record, None if there_ns is None else (there_ns - record.due_ns) / 1e6)

    def put_scheduled(self, name: str, record: Record, value_ms: float | None) -> None:
        """Take in a number from the due time: ``value_ms`` of a good request, infinite where it failed.

        What still ran had reached its age at least; a frame that a camera let go was never asked about.
        """
        if record.outcome == OK:
            self.samples.put(name, value_ms)
        elif record.outcome in (None, RUNNING):
            self.samples.put_at_least(name, 0.0 if record.stop_ns is None else (record.stop_ns - record.due_ns) / 1e6)
        elif record.outcome != DROPPED:
            self.samples.put(name, math.inf)

    @property
    def ok(self) -> int:
        """Good ones so far."""
        return self._outcomes[OK]

    def close(self, doubts: Sequence[str] = ()) -> Closed:
        """No record is missing now; those that are gone are counted as lost.

        Args:
            doubts: what else speaks against calling the step stable, in words.
        """
        due = max(self.window.due or 0, self._last_index + 1)
        if lost := due - self._count:
            self._outcomes[LOST] = lost
            for name in self._scheduled:
                self.samples.put_all(name, [math.inf] * lost)
        flow = flow_of(self._spans, self.window.window_ns) if self._spans and self.window.window_ns > 0 else None
        return Closed(self.window, self.samples, due, self._outcomes, self._details, self._spans, flow, doubts)


@dataclass(frozen=True, slots=True)
class Closed:
    """A step whose records are all in."""

    window: Window
    samples: Samples
    due: int
    outcomes: Counter[str]
    details: Counter[tuple[str, str]]
    spans: Sequence[Span]
    flow: Flow | None
    doubts: Sequence[str]

    @property
    def sent(self) -> int:
        """What was due and left."""
        return self.due - self.outcomes[UNSENT] - self.outcomes[DROPPED]

    @property
    def achieved_rate(self) -> float | None:
        """As :func:`achieved_rate` has it."""
        return achieved_rate(self.flow, self.spans)

    def summary(self, verdict: Verdict | None = None) -> Json:
        """The part of the step's summary that every kind has.

        Args:
            verdict: of a load that is judged otherwise than by its flow.
        """
        window = self.window
        verdict = verdict or judge(self.evidence(), self.flow)
        ok = self.outcomes[OK]
        return {
            "offered_rate": window.offered_rate,
            "dispatched_rate": rate(self.sent, window.seconds),
            "achieved_rate": self.achieved_rate,
            "verdict": verdict.name,
            "verdict_reason": verdict.reason,
            "is_complete": window.is_complete,
            "duration_seconds": rounded(window.seconds),
            "requests": {
                "due": self.due,
                "sent": self.sent,
                "ok": ok,
                "failed": self.due - ok - self.outcomes[DROPPED],
                "outcomes": dict(sorted(self.outcomes.items())),
            },
            "failures": [
                {"outcome": outcome, "detail": detail, "count": count}
                for (outcome, detail), count in self.details.most_common(SHOWN_FAILURES)
            ],
            RESPONSE: self.samples.column(RESPONSE),
            LAG: self.samples.column(LAG),
            "in_flight": in_flight(self.flow, self.spans, window.window_ns, window.mean_in_flight),
            "client": {
                "cpu_share": rounded(window.cpu_share),
                "cpu_ms_per_request": rounded(window.cpu_share * window.seconds * 1e3 / self.sent)
                if self.sent
                else None,
                "loop_lag_p99_ms": rounded(window.loop_lag_p99_ms),
            },
        }

    def evidence(self) -> Evidence:
        """What a verdict is given on."""
        window = self.window
        lags, responses = self.samples.of(LAG), self.samples.of(RESPONSE)
        return Evidence(
            due=self.due,
            ok=self.outcomes[OK],
            is_complete=window.is_complete,
            window_seconds=window.seconds,
            offered_rate=window.offered_rate,
            lag_p99_ms=percentile(lags, 0.99) if lags else 0.0,
            loop_lag_p99_ms=window.loop_lag_p99_ms,
            cpu_share=window.cpu_share,
            response_p50_ms=percentile(responses, 0.5) if responses else math.inf,
            failures=", ".join(
                f"{name} {count}" for name, count in self.outcomes.most_common() if name not in (OK, DROPPED)
            ),
            doubts=self.doubts,
        )


def achieved_rate(flow: Flow | None, spans: Iterable[Span]) -> float | None:
    """Over the steady part; of a step too short to have one, all good answers over the time to the last."""
    if flow is not None and flow.achieved_rate is not None:
        return rounded(flow.achieved_rate)
    ends = [span.end_ns for span in spans if span.is_ok and span.end_ns is not None]
    return rate(len(ends), max(ends) / 1e9) if ends else None


def in_flight(flow: Flow | None, spans: Iterable[Span], window_ns: int, by_driver: float) -> Json:
    """The driver's own count against the records': Little's law, each request's time cut at the window's end."""
    spent_ns = sum(max(0, min(span.end_ns or window_ns, window_ns) - max(span.start_ns, 0)) for span in spans)
    by_records = spent_ns / window_ns if window_ns else 0.0
    error = abs(by_driver - by_records) / by_driver if by_driver else None
    return {
        "mean": rounded(by_driver),
        "mean_by_records": rounded(by_records),
        "little_error": rounded(error),
        "growth": None if flow is None else rounded(flow.growth),
        "growth_interval": None if flow is None else [rounded(end) for end in flow.growth_interval],
    }


def rate(count: int, seconds: float) -> float | None:
    """So many a second; None over no time."""
    return rounded(count / seconds) if seconds > 0 else None


def rounded(value: float | None) -> float | None:
    """As summaries have numbers; None for what is none or infinite."""
    return None if value is None or not math.isfinite(value) else round(value, 6)

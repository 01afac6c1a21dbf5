"""What a step's load did to the system: requests in flight over time, rates, and one word for it with the reason.

Everything comes from when requests were due and when they were over, so a verdict can be made again from the records.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from vision_bench.bench.rise import Rise, Timed, rise_of
from vision_bench.stats import Interval, percentile

BATCHES = 10
_T_975_8 = 2.306004  # Student's t, 97.5 %, BATCHES - 2 degrees of freedom

FEWEST = 20
"""Arrivals under which nothing is said."""
MAX_FAILED = 0.01
MIN_ACHIEVED = 0.99
OVERLOAD = 0.1
"""STABLE is said where the load was, with 95 %, under 1.1 times the capacity."""
LEAST_RISE = 0.01
"""Seconds of response time a second of load that are worth a word."""
STEADY_SHARE = 2 / 3
"""Of a step, at least: in the time that the first answers take no queue can be seen."""
MAX_LOOP_LAG_MS = 5.0
LAG_SHARE, MAX_LAG_MS = 0.02, 10.0
"""Requests may leave later than the gaps allow by a share of the median response, up to a bound: it is in every
scheduled latency already, and no answer of seconds is judged by milliseconds (docs/decisions/0023)."""
MAX_CPU_SHARE = 0.8

Name = Literal["STABLE", "SATURATED", "CLIENT-LIMITED", "UNDETERMINED"]


class Span(NamedTuple):
    """A request in the system: from its due time to its end, ns from the start of the step. None: it never ended."""

    start_ns: int
    end_ns: int | None
    is_ok: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """How the number in flight moved over a step's steady part.

    Attributes:
        steady_seconds: from when the first answers were through (nine in ten had come, were all as long) to the end of
            arrivals.
        level: time-average of requests due and not over.
        growth: how much a straight line through ten batch means rises over the steady part, and its 95 % interval.
        achieved_rate: good answers a second over the steady part; None where fewer than two came before its end.
        rise: how the good answers' response times moved; None where they are too few.
        usual_seconds: how long nine in ten requests took at most, up to the step's end.
    """

    steady_seconds: float
    level: float
    growth: float
    growth_interval: Interval
    achieved_rate: float | None
    rise: Rise | None
    usual_seconds: float

    @property
    def noise(self) -> float:
        """How far a level moves by itself: three deviations of a Poisson count, and one request.

        Of the level at the start of the line: half of what it grew is in the average.
        """
        return 3.0 * math.sqrt(max(self.level - max(self.growth, 0.0) / 2.0, 0.0)) + 1.0


def flow_of(spans: Sequence[Span], window_ns: int) -> Flow:
    """Read a step's flow from its requests. ``spans`` in any order; at least one."""
    durations = [min(span.end_ns or window_ns, window_ns) - span.start_ns for span in spans]
    usual_ns = percentile(durations, 0.9)
    fill_ns = min(usual_ns, window_ns / 2)
    means = _batch_means(spans, int(fill_ns), window_ns)
    seconds = (window_ns - fill_ns) / 1e9
    slope, error = _slope(means, seconds)
    growth, reach = slope * seconds, _T_975_8 * error * seconds
    return Flow(
        steady_seconds=seconds,
        level=math.fsum(means) / len(means),
        growth=growth,
        growth_interval=Interval(growth - reach, growth + reach),
        achieved_rate=_achieved(spans, fill_ns, window_ns),
        rise=rise_of(
            [
                Timed(span.start_ns, span.end_ns - span.start_ns)
                for span in spans
                if span.is_ok and span.end_ns is not None
            ]
        ),
        usual_seconds=usual_ns / 1e9,
    )


def _achieved(spans: Sequence[Span], from_ns: float, window_ns: int) -> float | None:
    """Counted from a good answer on, the last one while the step filled: what that time is spent on is latency."""
    ends = sorted(span.end_ns for span in spans if span.is_ok and span.end_ns is not None and span.end_ns <= window_ns)
    if len(ends) < 2:
        return None
    start_ns = ends[max(bisect.bisect_right(ends, from_ns) - 1, 0)]
    # As many answers as came together with that one belong to it.
    behind = len(ends) - bisect.bisect_right(ends, start_ns)
    return behind / ((window_ns - start_ns) / 1e9) if window_ns > start_ns else None


def _batch_means(spans: Sequence[Span], start_ns: int, end_ns: int) -> list[float]:
    """Time-average of the number in flight in each of ten equal parts, exactly."""
    width = (end_ns - start_ns) / BATCHES
    # Area under the count up to t, from sums over sorted starts and ends: sum of (t - start) less sum of (t - end).
    starts = sorted(float(span.start_ns) for span in spans)
    ends = sorted(float(span.end_ns) for span in spans if span.end_ns is not None)
    edges = [start_ns + width * number for number in range(BATCHES + 1)]
    areas = [_ramp(starts, edge) - _ramp(ends, edge) for edge in edges]
    return [(after - before) / width for before, after in itertools.pairwise(areas)]


def _ramp(times: list[float], at: float) -> float:
    count = bisect.bisect_left(times, at)
    return count * at - math.fsum(times[:count])


def _slope(means: list[float], seconds: float) -> tuple[float, float]:
    """Least-squares slope a second over equally spaced means, and its standard error."""
    count = len(means)
    step = seconds / count
    middle, mean = (count - 1) / 2.0, math.fsum(means) / count
    square = math.fsum((number - middle) ** 2 for number in range(count))
    slope = math.fsum((number - middle) * (value - mean) for number, value in enumerate(means)) / square
    rest = math.fsum((value - mean - slope * (number - middle)) ** 2 for number, value in enumerate(means))
    return slope / step, math.sqrt(max(rest, 0.0) / (count - 2) / square) / step


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict is made from.

    Attributes:
        offered_rate: None in a closed loop, which has none.
        lag_p99_ms: of the driver, between due and dispatch; loop_lag_p99_ms: of the event loop's timers.
        response_p50_ms: scheduled, infinite where half have failed.
        doubts: what else speaks against calling the step stable, in words.
    """

    due: int
    ok: int
    is_complete: bool
    window_seconds: float
    offered_rate: float | None
    lag_p99_ms: float
    loop_lag_p99_ms: float
    cpu_share: float
    response_p50_ms: float
    failures: str = ""
    doubts: Sequence[str] = field(default_factory=tuple)


class Verdict(NamedTuple):
    """One word and why."""

    name: Name
    reason: str


def judge(evidence: Evidence, flow: Flow | None) -> Verdict:
    """The verdict on a step; ``flow`` None where nothing was due."""
    if not evidence.is_complete:
        return Verdict("UNDETERMINED", "the step was cut off before its end")
    if evidence.due < FEWEST or flow is None:
        return Verdict("UNDETERMINED", f"{evidence.due} arrivals, {FEWEST} needed; raise --duration or --requests")
    saturated = _saturation(evidence, flow)
    if saturated and evidence.lag_p99_ms < evidence.response_p50_ms / 10:
        return Verdict("SATURATED", saturated)
    if limited := client_limit(evidence):
        return Verdict("CLIENT-LIMITED", limited)
    failed = evidence.due - evidence.ok
    if failed > MAX_FAILED * evidence.due:
        return Verdict("UNDETERMINED", f"{failed} of {evidence.due} failed ({evidence.failures})")
    if evidence.doubts:
        return Verdict("UNDETERMINED", "; ".join(evidence.doubts))
    return _steadiness(evidence, flow)


def _saturation(evidence: Evidence, flow: Flow) -> str | None:
    """Why the load was more than the system could take; None where it was not, or nothing shows it."""
    if evidence.offered_rate is None or flow.rise is None or flow.growth <= flow.noise:
        return None
    if flow.rise.interval.low <= 0 or flow.rise.slope <= LEAST_RISE:
        return None
    rate = "nothing" if flow.achieved_rate is None else f"{flow.achieved_rate:.1f}/s"
    return (
        f"requests in flight grew by {flow.growth:.0f} over {flow.steady_seconds:.0f} s, {_said(flow.rise)}; "
        f"{rate} achieved of {evidence.offered_rate:.1f}/s offered"
    )


def client_limit(evidence: Evidence) -> str | None:
    """What the harness itself could not keep up with."""
    gap_ms = evidence.window_seconds * 1e3 / evidence.due
    lag_limit_ms = max(2.0, 0.05 * gap_ms, min(MAX_LAG_MS, LAG_SHARE * evidence.response_p50_ms))
    if evidence.offered_rate is not None and evidence.lag_p99_ms > lag_limit_ms:
        return f"requests left {evidence.lag_p99_ms:.1f} ms late (p99); {lag_limit_ms:.1f} ms are allowed"
    if evidence.loop_lag_p99_ms > MAX_LOOP_LAG_MS:
        return f"the client's event loop was {evidence.loop_lag_p99_ms:.1f} ms late (p99)"
    if evidence.cpu_share > MAX_CPU_SHARE:
        return f"the client used {evidence.cpu_share:.0%} of a core"
    return None


def _steadiness(evidence: Evidence, flow: Flow) -> Verdict:
    if evidence.offered_rate is None:
        return Verdict("STABLE", "a closed loop: its load follows the server, which it cannot saturate")
    if flow.achieved_rate is None:
        return Verdict("UNDETERMINED", f"no two answers came within {evidence.window_seconds:.1f} s; raise --duration")
    missing = (evidence.offered_rate - flow.achieved_rate) * flow.steady_seconds
    keeps_up = flow.achieved_rate >= MIN_ACHIEVED * evidence.offered_rate or missing <= flow.noise
    is_level = flow.growth_interval.low <= 0 or flow.growth <= flow.noise
    said = f"{flow.achieved_rate:.1f}/s achieved of {evidence.offered_rate:.1f}/s offered"
    if not (keeps_up and is_level):
        return Verdict("UNDETERMINED", f"{said}; in flight grew by {flow.growth:.1f}: run longer to tell")
    if unknown := _unknown(evidence, flow):
        return Verdict("UNDETERMINED", f"{said}; {unknown}")
    return Verdict("STABLE", f"{said}; in flight {flow.level:.1f} and level")


def _unknown(evidence: Evidence, flow: Flow) -> str | None:
    """Why a step that looks level may yet have been more than the system could take; None where it was not."""
    if flow.steady_seconds < STEADY_SHARE * evidence.window_seconds:
        needed = flow.usual_seconds / (1.0 - STEADY_SHARE)
        return (
            f"answers take {flow.usual_seconds:.1f} s (p90) of a step of {evidence.window_seconds:.1f} s, in which no \
queue can show: run for {math.ceil(needed)} s or longer"
        )
    if flow.rise is None:
        return "too few answers to tell a queue that grows from one that fluctuates; raise --duration or --requests"
    if flow.rise.interval.low > 0 and flow.rise.slope > LEAST_RISE:
        return f"{_said(flow.rise)}, which is a queue that grows, or a server that grows slower: run longer to tell"
    if flow.rise.interval.high < OVERLOAD:
        return None
    return (
        f"{evidence.due} arrivals cannot exclude a load of {1.0 + OVERLOAD:g} times the capacity ({_said(flow.rise)}): \
run longer to tell"
    )


def _said(rise: Rise) -> str:
    low, high = rise.interval
    return f"response times by {rise.slope:+.2f} s a second ({low:+.2f} to {high:+.2f})"

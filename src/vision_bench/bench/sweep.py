"""The search for the knee: the largest rate that a server keeps up with, found by doubling and then bisecting.

Pure: the next rate follows from the steps so far, so that a search that was cut off goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from vision_bench.bench.plan import DEFAULT_SECONDS, LoadPlan, Step, check_sizes, open_step
from vision_bench.errors import InvalidRequest
from vision_bench.stats import wilson_interval

Json = dict[str, Any]

FEWEST_ARRIVALS = 60
"""A step of a search has at least this many: a slope through fewer is mostly luck."""
LONGER = 3
"""A step whose rate is tried again is so many times as long."""
LOWEST = 64
"""Where nothing is kept up with, the search goes down to the first rate by this much, then gives up."""
_DIGITS = 3
_OF_EVERY_STEP = ("concurrency", "duration_seconds", "max_requests", "seed")


@dataclass(frozen=True, slots=True)
class Sweep:
    """A search as it was asked for.

    Attributes:
        target: share of all that is due that must keep the SLO, by the lower end of its 95 % interval.
        width: the search ends when the lowest rate that failed is at most this share above the highest that held.
    """

    first_rate: float = 1.0
    target: float = 0.95
    width: float = 0.1
    max_steps: int = 16

    def __post_init__(self) -> None:
        if not 0.0 < self.target < 1.0:
            raise InvalidRequest(f"--sweep-target is {self.target:g}; give a share between 0 and 1, such as 0.95")
        if not 0.01 <= self.width <= 1.0:
            raise InvalidRequest(f"--sweep-width is {self.width:g}; give a share from 0.01 to 1, such as 0.1")
        if self.first_rate <= 0.0:
            raise InvalidRequest(f"the first rate of a sweep is {self.first_rate:g}; it must be above 0")


@dataclass(frozen=True, slots=True)
class Point:
    """A complete step: ``problem`` says in words why its rate was not kept up with; None where it was.

    Attributes:
        is_doubtful: the problem may be the client's, or chance: the rate is tried once more.
    """

    rate: float
    problem: str | None
    is_doubtful: bool = False
    is_clients: bool = False


def read_point(step: Mapping[str, Any], target: float) -> Point:
    """A step of the summary as a point of the search."""
    rate, verdict, slo = step["rate"], step["verdict"], step.get("slo")
    if verdict != "STABLE":
        problem = f"{verdict}: {step['verdict_reason']}"
        return Point(rate, problem, verdict != "SATURATED", verdict == "CLIENT-LIMITED")
    if slo and slo["limits"] and (slo["interval"] is None or slo["interval"][0] < target):
        due = step["requests"]["due"]
        low = "" if slo["interval"] is None else f", at least {slo['interval'][0]:.1%} of the like"
        return Point(rate, f"{slo['attained']} of {due} kept the SLO{low}; {target:.1%} was asked for")
    return Point(rate, None)


def next_rate(sweep: Sweep, points: Sequence[Point]) -> float | None:
    """The rate of the next step, from those so far; None where the search is over."""
    return None if _end(sweep, points) is not None else _candidate(sweep, points)


def _candidate(sweep: Sweep, points: Sequence[Point]) -> float:
    if not points:
        return sweep.first_rate
    if _is_to_be_tried_again(points):
        return points[-1].rate
    held, failed = bracket(points)
    if held is None:
        return _rounded(points[-1].rate / 2.0)
    if failed is None:
        return _rounded(held.rate * 2.0)
    return _rounded(math.sqrt(held.rate * failed.rate))


def _end(sweep: Sweep, points: Sequence[Point]) -> str | None:
    """Why the search is over; None where it is not."""
    held, failed = bracket(points)
    if len(points) >= sweep.max_steps:
        return f"{sweep.max_steps} steps were made"
    if not points or _is_to_be_tried_again(points):
        return None
    if held is None and _candidate(sweep, points) < sweep.first_rate / LOWEST:
        return f"nothing was kept up with down to {points[-1].rate:g}/s"
    if held is not None and failed is not None:
        if failed.rate <= held.rate * (1.0 + sweep.width):
            return f"{held.rate:g}/s and {failed.rate:g}/s are within {sweep.width:.0%} of each other"
        if _candidate(sweep, points) in (held.rate, failed.rate):
            return f"no rate of {_DIGITS} digits lies between {held.rate:g}/s and {failed.rate:g}/s"
    return None


def _is_to_be_tried_again(points: Sequence[Point]) -> bool:
    last = points[-1]
    return last.is_doubtful and sum(point.rate == last.rate for point in points) == 1


def bracket(points: Sequence[Point]) -> tuple[Point | None, Point | None]:
    """The highest rate that held and the lowest that failed; of a rate that was tried again the last word counts."""
    settled = {point.rate: point for point in points}
    held = max((point for point in settled.values() if point.problem is None), key=lambda p: p.rate, default=None)
    failed = min((point for point in settled.values() if point.problem is not None), key=lambda p: p.rate, default=None)
    return held, failed


def knee(sweep: Sweep, points: Sequence[Point]) -> Json:
    """What the search found, and why it ended, for the summary.

    ``rate`` is None where no rate held; without ``is_bracketed`` the knee may lie higher.
    """
    held, failed = bracket(points)
    end = _end(sweep, points)
    if held is None:
        reason = "no rate held" if failed is None else f"no rate held; {failed.rate:g}/s was {failed.problem}"
    elif failed is None:
        reason = f"{held.rate:g}/s held and nothing failed: the knee lies higher"
    else:
        whose = ". That is the client's limit: the server may take more" if failed.is_clients else ""
        reason = f"{held.rate:g}/s held; {failed.rate:g}/s was {failed.problem}{whose}"
    return {
        "rate": None if held is None else held.rate,
        "failed_at": None if failed is None else failed.rate,
        "is_bracketed": held is not None and failed is not None and not failed.is_clients,
        "reason": reason,
        "ended_because": end or "the run was cut off",
        "is_over": end is not None,
        "target": sweep.target,
        "width": sweep.width,
    }


def arrivals_needed(sweep: Sweep, *, has_slo: bool) -> int:
    """How many arrivals a step needs before it can hold, with room for some that miss."""
    if not has_slo:
        return FEWEST_ARRIVALS
    count = 1
    while (interval := wilson_interval(count, count)) is None or interval.low < sweep.target:
        count += 1
    return max(FEWEST_ARRIVALS, 2 * count)


def read_points(steps: Sequence[Mapping[str, Any]], target: float) -> list[Point]:
    """The steps of a summary as points, those that ran to their end."""
    return [read_point(step, target) for step in steps if step["is_complete"]]


def check_sweep(load: LoadPlan) -> None:
    """Refuse options that contradict a search.

    Raises:
        InvalidRequest: the message says which.
    """
    check_sizes(load)
    if len(load.rates) > 1 or len(load.concurrency) > 1:
        raise InvalidRequest("--sweep finds the rates itself: give one --rate to begin with, and one cap at most")
    if load.arrivals.kind in ("ramp", "trace"):
        raise InvalidRequest(f"--sweep needs a steady load; --arrivals {load.arrivals.kind} is none")
    if load.cameras:
        raise InvalidRequest(
            "--sweep searches a rate; give the numbers of cameras themselves, such as --cameras 1,2,4,8"
        )
    if load.repeat != 1:
        raise InvalidRequest("--sweep and --repeat exclude each other: a doubtful step is run again by itself")


class Search:
    """The steps of a search, as a ``Program``.

    Args:
        load: arrivals, duration and seed of every step; a step is longer where its rate needs that for enough arrivals.
        steps: the steps so far, in order, as the summary has them.
    """

    def __init__(self, sweep: Sweep, load: LoadPlan, *, has_slo: bool, steps: Callable[[], Sequence[Json]]) -> None:
        self.size = sweep.max_steps
        self._sweep = sweep
        self._load = load
        self._needed = arrivals_needed(sweep, has_slo=has_slo)
        self._steps = steps
        self._points: list[Point] = []

    def facts(self) -> Json:
        """What the manifest keeps: two runs with the same facts make the same search."""
        load = {name: value for name, value in asdict(self._load).items() if name in _OF_EVERY_STEP}
        load |= {"arrivals": self._load.arrivals.label, "concurrency": list(self._load.concurrency)}
        return {"sweep": asdict(self._sweep), "load": load}

    def step(self, index: int) -> Step | None:
        if index > len(self._points):
            self._points = read_points(self._steps(), self._sweep.target)
        before = self._points[:index]
        rate = next_rate(self._sweep, before)
        if rate is None:
            return None
        tries = sum(point.rate == rate for point in before)
        return open_step(self._timed(rate, tries), rate, tries)

    def _timed(self, rate: float, tries: int) -> LoadPlan:
        """The load of a step. A second try is longer: what was open is mostly open because the step was short."""
        if self._load.max_requests is not None:
            return self._load
        longer = LONGER if tries else 1
        seconds = self._load.duration_seconds or DEFAULT_SECONDS
        return replace(self._load, duration_seconds=longer * max(seconds, self._needed / rate))


def _rounded(rate: float) -> float:
    """To three digits: a rate that a person can say."""
    return float(f"{rate:.{_DIGITS}g}")

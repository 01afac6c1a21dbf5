"""How response times move while a step's load lasts: what tells a queue that grows from one that only fluctuates.

First come, first served, a load of rho times the capacity adds rho - 1 seconds of waiting with every second that it
lasts. That number has no unit and no scale: it reads the same for 20 requests and for 20,000.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from vision_bench.stats import Interval

_GROUPS = 6
_T_95_4 = 2.131847  # Student's t, 95 % on one side, _GROUPS - 2 degrees of freedom
FEWEST_ANSWERS = 2 * _GROUPS


class Timed(NamedTuple):
    """A good answer: when it was due and how long it took from then, ns."""

    due_ns: int
    response_ns: int


class Rise(NamedTuple):
    """Seconds of response time gained in a second of load; each end of ``interval`` holds with 95 %, on its side."""

    slope: float
    interval: Interval


def rise_of(answers: Sequence[Timed]) -> Rise | None:
    """A straight line through the means of six groups of neighbours; None with fewer than 12 answers.

    The interval is that of a random walk, for the waiting time near and above capacity is one: its steps are
    independent, not its values, and the scatter about the line would tell a third of the uncertainty. Where responses
    are independent of each other the interval is several times too wide, which only asks for more of them.
    """
    if len(answers) < FEWEST_ANSWERS:
        return None
    by_due = sorted(answers)
    edges = [len(by_due) * number // _GROUPS for number in range(_GROUPS + 1)]
    groups = [by_due[start:stop] for start, stop in itertools.pairwise(edges)]
    at = [math.fsum(one.due_ns for one in group) / len(group) / 1e9 for group in groups]
    waited = [math.fsum(one.response_ns for one in group) / len(group) / 1e9 for group in groups]
    spacing = (at[-1] - at[0]) / (_GROUPS - 1)
    if spacing <= 0.0:
        return None
    middle, mean = math.fsum(at) / _GROUPS, math.fsum(waited) / _GROUPS
    square = math.fsum((x - middle) ** 2 for x in at)
    slope = math.fsum((x - middle) * (y - mean) for x, y in zip(at, waited, strict=True)) / square
    reach = _T_95_4 * _error_of_a_walk([y - slope * x for x, y in zip(at, waited, strict=True)]) / spacing
    return Rise(slope, Interval(slope - reach, slope + reach))


def _error_of_a_walk(means: Sequence[float]) -> float:
    """Standard error of the slope over group means of a random walk, a spacing; ``means`` less the line.

    A walk of variance v a spacing has steps of 2 v / 3 between neighbouring means, and over m spacings a least-squares
    slope of variance 6 v / 5 m: together 9 / 5 m of the steps' variance.
    """
    steps = [after - before for before, after in itertools.pairwise(means)]
    variance = math.fsum(step * step for step in steps) / (len(steps) - 1)
    return math.sqrt(1.8 * variance / len(means))

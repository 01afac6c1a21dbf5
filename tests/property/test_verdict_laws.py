"""Verdicts on simulated queues whose load is known: how often each word is wrong, whatever the number of arrivals.

Every draw is seeded, so the shares below are the same on every machine.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from typing import NamedTuple

import pytest

from vision_bench.bench.arrivals import make_schedule, parse_process
from vision_bench.bench.verdict import Evidence, Span, flow_of, judge
from vision_bench.stats import percentile

SECOND = 10**9
RATE = 5.0
STEPS = 40
"""A share of one in ten, four, is twice what a test at 95 % lets through."""


class Queue(NamedTuple):
    """A server with ``slots`` places, first come first served; its services of one length, or exponential."""

    slots: int
    is_even: bool
    arrivals: str


QUEUES = [
    Queue(1, False, "poisson"),
    Queue(1, True, "poisson"),
    Queue(8, False, "poisson"),
    Queue(4, False, "gamma:0.5"),
    Queue(8, True, "constant"),
]
ARRIVALS = [20, 36, 80, 200, 600]


def verdicts(queue: Queue, load: float, count: int, steps: int = STEPS) -> Counter[str]:
    """What is said of ``steps`` steps of ``count`` arrivals, at ``load`` times the capacity."""
    return Counter(verdict(queue, load, count, seed) for seed in range(steps))


def verdict(queue: Queue, load: float, count: int, seed: int) -> str:
    seconds = count / RATE
    schedule = make_schedule(
        parse_process(queue.arrivals), rate=RATE, duration_seconds=seconds, seed=f"{count}/{load:g}/{seed}"
    )
    draw = random.Random(seed)
    mean = load * queue.slots / RATE
    free = [0] * queue.slots
    spans = []
    for due_ns in schedule.offsets_ns:
        takes = mean if queue.is_even else draw.expovariate(1.0 / mean)
        end_ns = max(due_ns, heapq.heappop(free)) + round(takes * SECOND)
        heapq.heappush(free, end_ns)
        spans.append(Span(due_ns, end_ns, True))
    evidence = Evidence(
        due=len(spans),
        ok=len(spans),
        is_complete=True,
        window_seconds=seconds,
        offered_rate=RATE,
        lag_p99_ms=0.3,
        loop_lag_p99_ms=1.0,
        cpu_share=0.1,
        response_p50_ms=percentile([(end - due) / 1e6 for due, end, _ in spans if end is not None], 0.5),
    )
    return judge(evidence, flow_of(spans, round(seconds * SECOND))).name


@pytest.mark.parametrize("queue", QUEUES, ids=str)
@pytest.mark.parametrize("load", [1.1, 1.4])
def test_more_than_the_capacity_is_hardly_ever_called_stable(queue: Queue, load: float) -> None:
    """At 1.1 and 1.4 times it, with 20 arrivals as with 600."""
    for count in ARRIVALS:
        assert verdicts(queue, load, count)["STABLE"] <= STEPS // 10, count


@pytest.mark.parametrize("queue", QUEUES, ids=str)
@pytest.mark.parametrize("load", [0.7, 0.9])
def test_less_than_the_capacity_is_hardly_ever_called_saturated(queue: Queue, load: float) -> None:
    """A busy server's queue grows for a while and shrinks again."""
    for count in ARRIVALS:
        assert verdicts(queue, load, count)["SATURATED"] <= STEPS // 10, count


@pytest.mark.parametrize("queue", QUEUES, ids=str)
def test_enough_arrivals_settle_it(queue: Queue) -> None:
    """A verdict that is always left open would be right, and of no use: 200 arrivals are told apart at 0.3 and 1.4."""
    assert verdicts(queue, 0.3, 200)["STABLE"] >= STEPS * 9 // 10
    assert verdicts(queue, 1.4, 200)["SATURATED"] >= STEPS // 2
    assert verdicts(queue, 1.4, 2000, steps=5)["SATURATED"] == 5


def test_even_answers_need_few_arrivals() -> None:
    """Where every answer takes as long as the next, 36 are enough below a third of the capacity."""
    assert verdicts(Queue(1, True, "poisson"), 0.3, 36)["STABLE"] >= STEPS * 9 // 10

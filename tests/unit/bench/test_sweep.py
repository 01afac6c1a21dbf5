"""bench.sweep: the search for the knee as a pure function of the steps so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.sweep import (
    Point,
    Search,
    Sweep,
    arrivals_needed,
    bracket,
    check_sweep,
    knee,
    next_rate,
    read_point,
)
from vision_bench.errors import InvalidRequest


def searched(sweep: Sweep, server: Callable[[float], str | None]) -> list[Point]:
    """Run a search against a server that says what is wrong at a rate."""
    points: list[Point] = []
    while (rate := next_rate(sweep, points)) is not None:
        points.append(Point(rate, server(rate)))
    return points


def step(rate: float, verdict: str = "STABLE", interval: list[float] | None = None, **slo: Any) -> dict[str, Any]:
    return {
        "rate": rate,
        "verdict": verdict,
        "verdict_reason": "why",
        "is_complete": True,
        "requests": {"due": 100},
        "slo": {"limits": {}, "interval": interval, "attained": 90} | slo,
    }


@pytest.mark.parametrize("capacity", [0.05, 1.0, 21.9, 137.0, 1000.0])
@pytest.mark.parametrize("width", [0.02, 0.1, 0.5])
def test_the_knee_lies_in_a_bracket_as_narrow_as_was_asked_for(capacity: float, width: float) -> None:
    """Whatever the capacity: held at or under it, failed above it, within the width."""
    sweep = Sweep(width=width, max_steps=40)
    points = searched(sweep, lambda rate: None if rate <= capacity else "SATURATED")
    held, failed = bracket(points)
    assert held is not None and failed is not None
    assert held.rate <= capacity < failed.rate <= held.rate * (1 + width)
    said = knee(sweep, points)
    assert (said["rate"], said["failed_at"], said["is_bracketed"], said["is_over"]) == (
        held.rate, failed.rate, True, True,
    )  # fmt: skip


def test_it_doubles_and_then_bisects() -> None:
    """1, 2, 4, 8, 16 fails; then geometric middles."""
    rates = [point.rate for point in searched(Sweep(), lambda rate: None if rate < 10 else "SATURATED")]
    assert rates == [1, 2, 4, 8, 16, 11.3, 9.51, 10.4]


def test_it_ends_after_as_many_steps_as_are_allowed_and_says_so() -> None:
    """A server without a limit has no knee: the highest rate held, the bracket is open."""
    sweep = Sweep(max_steps=4)
    points = searched(sweep, lambda _: None)
    said = knee(sweep, points)
    assert [point.rate for point in points] == [1, 2, 4, 8]
    assert (said["rate"], said["is_bracketed"], said["ended_because"]) == (8, False, "4 steps were made")


def test_a_server_that_keeps_up_with_nothing_has_no_knee() -> None:
    """It goes down to a 64th of the first rate and gives up."""
    sweep = Sweep(first_rate=8)
    points = searched(sweep, lambda _: "SATURATED: all of it")
    assert [point.rate for point in points] == [8, 4, 2, 1, 0.5, 0.25, 0.125]
    said = knee(sweep, points)
    assert said["rate"] is None and "down to 0.125/s" in said["ended_because"] and "all of it" in said["reason"]


def test_what_may_be_chance_is_tried_once_more_and_the_second_word_counts() -> None:
    """UNDETERMINED and CLIENT-LIMITED are run again at the same rate; SATURATED is not."""
    sweep = Sweep()
    doubtful = Point(1, "UNDETERMINED: why", is_doubtful=True)
    assert next_rate(sweep, [doubtful]) == 1
    assert next_rate(sweep, [doubtful, Point(1, None)]) == 2
    assert next_rate(sweep, [doubtful, doubtful]) == 0.5
    assert next_rate(sweep, [Point(1, "SATURATED")]) == 0.5


def test_a_limit_of_the_client_is_not_the_servers_knee() -> None:
    """The bracket is not the server's, and the reason says so."""
    sweep = Sweep(max_steps=3)
    client = read_point(step(2, "CLIENT-LIMITED"), 0.95)
    said = knee(sweep, [Point(1, None), client, client])
    assert (said["rate"], said["is_bracketed"]) == (1, False) and "the server may take more" in said["reason"]


def test_a_step_holds_where_it_is_stable_and_the_lower_end_of_attainment_reaches_the_target() -> None:
    """Without an SLO stable is enough; with one, 90 of 100 are not 95 %."""
    limits = {"ttft_ms": "<500"}
    assert read_point(step(4), 0.95) == Point(4, None)
    assert read_point(step(4, limits=limits, interval=[0.96, 1.0]), 0.95).problem is None
    missed = read_point(step(4, limits=limits, interval=[0.83, 0.94]), 0.95)
    assert missed.problem is not None and "90 of 100" in missed.problem and not missed.is_doubtful
    assert read_point(step(4, "SATURATED"), 0.95) == Point(4, "SATURATED: why")


def test_a_step_is_long_enough_to_hold() -> None:
    """73 of 73 are 95 % at the lower end; twice that leaves room. Without an SLO sixty are enough."""
    assert arrivals_needed(Sweep(), has_slo=True) == 146
    assert arrivals_needed(Sweep(), has_slo=False) == 60


def load(**options: Any) -> LoadPlan:
    given: dict[str, Any] = {"rates": (), "concurrency": (), "arrivals": parse_process("poisson")}
    return LoadPlan(**given | options)


def test_a_search_that_was_cut_off_goes_on_where_it_was() -> None:
    """The same steps, whether they were asked for one by one or all were there already."""
    done: list[dict[str, Any]] = []
    search = Search(Sweep(), load(duration_seconds=10), has_slo=False, steps=lambda: done)
    first = search.step(0)
    assert first is not None and first.rate == 1 and first.count == 60
    done += [step(1), step(2), step(4, "UNDETERMINED"), step(4, "SATURATED")]
    again = Search(Sweep(), load(duration_seconds=10), has_slo=False, steps=lambda: done)
    made = [again.step(index) for index in range(5)]
    assert [one.rate for one in made if one] == [1, 2, 4, 4, 2.83]
    # A second try draws other gaps, and takes three times as long.
    assert made[2] and made[3] and made[3].count == 3 * (made[2].count or 0)
    assert made[2] and made[3] and made[2].facts()["schedule_sha256"] != made[3].facts()["schedule_sha256"]
    assert [search.step(index) for index in range(5)] == made


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rates": [1, 2]}, "one --rate"),
        ({"concurrency": [1, 2]}, "one cap"),
        ({"arrivals": parse_process("ramp:5")}, "ramp"),
        ({"repeat": 2}, "--repeat"),
        ({"duration_seconds": 0}, "--duration"),
    ],
)
def test_options_that_contradict_a_search_are_refused(options: dict[str, Any], named: str) -> None:
    """By name."""
    with pytest.raises(InvalidRequest, match=named):
        check_sweep(load(**options))


@pytest.mark.parametrize("options", [{"target": 1.0}, {"width": 0.0}, {"first_rate": -1.0}])
def test_a_search_without_an_end_is_refused(options: dict[str, Any]) -> None:
    """No share of 1 can be shown by a sample; a bracket of no width is never reached."""
    with pytest.raises(InvalidRequest):
        Sweep(**options)

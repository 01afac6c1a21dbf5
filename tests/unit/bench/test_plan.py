"""Options to steps: what runs, in which order, and which options contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.plan import Ladder, LoadPlan, Step, make_steps
from vision_bench.errors import InvalidRequest


def steps(*, arrivals: str = "poisson", **options: Any) -> list[Step]:
    return make_steps(LoadPlan(**{"rates": (), "concurrency": (), "arrivals": parse_process(arrivals)} | options))


def test_every_rate_is_a_step_of_thirty_seconds() -> None:
    """Due is rate times duration, whatever the process."""
    made = steps(rates=[1, 2.5])
    assert [(step.name, len(step.schedule.offsets_ns) if step.schedule else None) for step in made] == [
        ("rate 1", 30),
        ("rate 2.5", 75),
    ]
    assert made[0].facts()["offered_rate"] == 1 and made[0].facts()["due"] == 30


@pytest.mark.parametrize("arrivals", ["constant", "poisson", "gamma:0.3", "ramp:20"])
def test_a_number_of_requests_alone_is_how_long_a_step_is(arrivals: str) -> None:
    """40 requests, and 4 s at 10 a second; a ramp is there sooner."""
    made = steps(rates=[10], max_requests=40, arrivals=arrivals)[0]
    assert made.schedule is not None and len(made.schedule.offsets_ns) == 40
    assert made.window_ns is not None and made.window_ns <= 4 * 10**9


def test_the_sooner_of_duration_and_requests_ends_a_step() -> None:
    """3 s at 10 a second are 30; 20 requests are fewer."""
    assert len(steps(rates=[10], duration_seconds=3, max_requests=100)[0].schedule.offsets_ns) == 30  # type: ignore[union-attr]
    assert len(steps(rates=[10], duration_seconds=3, max_requests=20)[0].schedule.offsets_ns) == 20  # type: ignore[union-attr]


def test_a_repeated_ladder_has_schedules_of_its_own() -> None:
    """The whole ladder once more, in order, with other random times; the same seed gives the same run."""
    made = steps(rates=[5, 10], repeat=2)
    assert [(step.name, step.round) for step in made] == [("rate 5", 0), ("rate 10", 0), ("rate 5", 1), ("rate 10", 1)]
    hashes = [step.facts()["schedule_sha256"] for step in made]
    assert len(set(hashes)) == 4
    assert hashes == [step.facts()["schedule_sha256"] for step in steps(rates=[5, 10], repeat=2)]
    assert hashes != [step.facts()["schedule_sha256"] for step in steps(rates=[5, 10], repeat=2, seed=1)]


def test_concurrency_alone_is_a_closed_loop() -> None:
    """A step for each number of lanes; without a rate there is no schedule and nothing offered."""
    one, four = steps(concurrency=[1, 4], duration_seconds=5)
    assert (one.schedule, four.concurrency, four.window_ns, four.name) == (None, 4, 5 * 10**9, "concurrency 4")
    assert (one.facts()["load"], one.facts()["offered_rate"], one.facts()["due"]) == ("closed", None, None)
    assert steps(concurrency=[1], max_requests=9)[0].window_ns is None
    assert steps(concurrency=[1])[0].window_ns == 30 * 10**9


def test_concurrency_with_a_rate_is_a_cap() -> None:
    """One number."""
    made = steps(rates=[10], concurrency=[1], duration_seconds=1)[0]
    assert (made.concurrency, made.name) == (1, "rate 10, 1 at most") and made.schedule is not None
    with pytest.raises(InvalidRequest, match="cap"):
        steps(rates=[10], concurrency=[1, 2])


def test_a_trace_needs_no_rate() -> None:
    """It has its own; with rates it is stretched to each."""
    made = steps(arrivals="trace:t.txt", trace=[0.0, 1.0, 3.0])
    assert [(step.name, step.rate) for step in made] == [("trace:t.txt", None)]
    scaled = steps(arrivals="trace:t.txt", trace=[0.0, 1.0, 3.0], rates=[1, 2])
    assert [round(step.schedule.rate, 3) for step in scaled if step.schedule] == [1, 2]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "--rate"),
        ({"rates": [0]}, "--rate"),
        ({"rates": [-1]}, "--rate"),
        ({"concurrency": [0]}, "--concurrency"),
        ({"rates": [1], "duration_seconds": 0}, "--duration"),
        ({"rates": [0.01], "duration_seconds": 1}, "arrivals"),
    ],
)
def test_what_makes_no_load_is_refused(options: dict[str, Any], says: str) -> None:
    """Before anything is sent."""
    with pytest.raises(InvalidRequest, match=says):
        steps(**options)


def test_cameras_are_steps_with_frames_at_their_own_times() -> None:
    """Two cameras at 500 ms for 3 s: twelve frames, four a second; the deadline is the period unless it is said."""
    first, second = steps(cameras=[2, 4], period_ms=500, duration_seconds=3, drop="busy")
    assert (first.name, first.count, second.count) == ("2 cameras, 500 ms", 12, 24)
    facts = first.facts()
    assert (facts["load"], facts["offered_rate"], facts["arrivals"]) == ("cameras", 4, "cameras, drop busy")
    assert facts["cameras"] == {"count": 2, "period_ns": 500_000_000, "drop": "busy", "deadline_ns": 500_000_000}
    (one,) = steps(cameras=[1], period_ms=500, deadline_ms=200)
    assert one.cameras is not None and one.cameras.deadline_ns == 200_000_000


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"cameras": [2]}, "--period-ms"),
        ({"period_ms": 100}, "--cameras"),
        ({"cameras": [2], "period_ms": 100, "rates": [1]}, "--rate"),
        ({"cameras": [2], "period_ms": 100, "max_requests": 5}, "--duration"),
        ({"cameras": [0], "period_ms": 100}, "--cameras must be above 0"),
        ({"cameras": [2], "period_ms": -1}, "--period-ms must be above 0"),
        ({"cameras": [2], "period_ms": 100, "deadline_ms": 0}, "--deadline-ms"),
    ],
)
def test_cameras_with_what_contradicts_them_are_refused(options: dict[str, Any], named: str) -> None:
    """By the option that is missing or too many."""
    with pytest.raises(InvalidRequest, match=named):
        steps(**options)


def test_each_step_runs_under_each_variant_next_to_the_others() -> None:
    """Same schedule, another name; a step without a variant says nothing of any."""
    made = Ladder(steps(rates=[1, 2]))
    each = made.under_each([{"arm": "a", "n": 1}, {"arm": "b", "n": 1}]).facts()
    assert [step["name"] for step in each] == [
        "rate 1, arm a, n 1",
        "rate 1, arm b, n 1",
        "rate 2, arm a, n 1",
        "rate 2, arm b, n 1",
    ]
    assert each[0]["schedule_sha256"] == each[1]["schedule_sha256"] == made.facts()[0]["schedule_sha256"]
    assert each[1]["variant"] == {"arm": "b", "n": 1} and "variant" not in made.facts()[0]

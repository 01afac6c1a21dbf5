"""Schedules of arrivals: how many, when, and the same again from the same seed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from vision_bench.bench.arrivals import Process, make_schedule, parse_process, read_trace, trace_schedule
from vision_bench.errors import InvalidRequest


def gaps_cv(offsets: list[int]) -> float:
    gaps = [later - earlier for earlier, later in pairwise(offsets)]
    mean = sum(gaps) / len(gaps)
    return (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 / mean


def make(text: str, *, rate: float = 10, seconds: float = 20, seed: str = "0", limit: int | None = None) -> list[int]:
    process = parse_process(text)
    made = make_schedule(process, rate=rate, duration_seconds=seconds, seed=seed, max_requests=limit)
    return list(made.offsets_ns)


def test_constant_arrivals_are_equally_far_apart_from_the_first_instant_on() -> None:
    """4 a second for one second: at 0, 250, 500 and 750 ms."""
    assert make("constant", rate=4, seconds=1) == [0, 250_000_000, 500_000_000, 750_000_000]


@pytest.mark.parametrize(
    ("text", "low", "high"), [("poisson", 0.9, 1.1), ("gamma:0.25", 1.7, 2.3), ("gamma:4", 0.45, 0.55)]
)
def test_the_spread_of_gaps_is_that_of_the_process(text: str, low: float, high: float) -> None:
    """The coefficient of variation of the gaps is 1 for Poisson and 1 / sqrt(shape) for gamma."""
    assert low < gaps_cv(make(text, rate=100, seconds=100)) < high


def test_a_ramp_rises_in_a_straight_line() -> None:
    """From 10 to 30 a second in 10 s: 200 arrivals, 75 of them in the first half and 125 in the second."""
    offsets = make("ramp:30", rate=10, seconds=10)
    assert len(offsets) == 200
    assert sum(offset < 5e9 for offset in offsets) == 75
    assert offsets[1] - offsets[0] == pytest.approx(1e8, rel=0.02)
    assert offsets[-1] - offsets[-2] == pytest.approx(1e9 / 30, rel=0.02)


def test_a_ramp_may_fall() -> None:
    """From 30 down to 10 a second is the same number of arrivals."""
    offsets = make("ramp:10", rate=30, seconds=10)
    assert (len(offsets), sum(offset < 5e9 for offset in offsets)) == (200, 125)


def test_a_limit_of_requests_ends_the_step_sooner() -> None:
    """5 requests at 10 a second are half a second, whatever the duration says; a higher limit changes nothing."""
    short = make_schedule(Process("poisson"), rate=10, duration_seconds=20, seed="0", max_requests=5)
    assert (len(short.offsets_ns), short.window_ns) == (5, 500_000_000)
    assert make("poisson", limit=10_000) == make("poisson")


def test_the_seed_decides() -> None:
    """The same seed gives the same times and the same hash; another seed gives others."""
    one, same, other = (
        make_schedule(Process("poisson"), rate=10, duration_seconds=5, seed=seed) for seed in ("1", "1", "2")
    )
    assert (one, one.sha256) == (same, same.sha256)
    assert one.sha256 != other.sha256
    assert one.offsets_ns[0] == 73_497_609, "a schedule made earlier can still be made"


@pytest.mark.parametrize(
    "text",
    ["", "poison", "poisson:2", "constant:1", "gamma", "gamma:0", "gamma:x", "gamma:-1", "ramp", "ramp:nan", "trace:"],
)
def test_what_is_no_process_is_refused(text: str) -> None:
    """The message holds what was given."""
    with pytest.raises(InvalidRequest, match="arrivals"):
        parse_process(text)


@pytest.mark.parametrize("text", ["constant", "poisson", "gamma:0.5", "ramp:30", "trace:times.txt"])
def test_a_process_is_written_as_it_was_read(text: str) -> None:
    """The label is what the command line takes."""
    assert parse_process(text).label == text


@pytest.mark.parametrize(("rate", "seconds"), [(0, 1), (-1, 1), (1, 0), (0.001, 1), (1e9, 1e9), (float("nan"), 1)])
def test_a_step_without_arrivals_or_without_end_is_refused(rate: float, seconds: float) -> None:
    """Also one of more than ten million."""
    with pytest.raises(InvalidRequest):
        make("constant", rate=rate, seconds=seconds)


def test_a_trace_is_played_as_recorded() -> None:
    """Times as they are; the step ends one mean gap after the last."""
    made = trace_schedule([0.0, 0.5, 2.0], rate=None, duration_seconds=None)
    assert (made.offsets_ns, made.window_ns) == ([0, 500_000_000, 2_000_000_000], 3_000_000_000)


def test_a_trace_can_be_squeezed_to_a_rate() -> None:
    """Three arrivals in 3 s at a rate of 2 are three in 1.5 s, with the same proportions."""
    made = trace_schedule([0.0, 0.5, 2.0], rate=2, duration_seconds=None)
    assert (made.offsets_ns, made.window_ns) == ([0, 250_000_000, 1_000_000_000], 1_500_000_000)
    assert made.rate == pytest.approx(2)


def test_a_trace_can_be_cut() -> None:
    """By time or by number."""
    assert trace_schedule([0.0, 0.5, 2.0], rate=None, duration_seconds=1).offsets_ns == [0, 500_000_000]
    assert trace_schedule([0.0, 0.5, 2.0], rate=None, duration_seconds=None, max_requests=1) == trace_schedule(
        [0.0, 0.5, 2.0], rate=None, duration_seconds=0.5
    )


def test_a_trace_file_is_a_number_a_line() -> None:
    """Comments and blank lines are skipped."""
    assert read_trace(["# seconds", "", "0", " 1.5 ", "1.5"]) == [0.0, 1.5, 1.5]


@pytest.mark.parametrize(
    ("lines", "says"),
    [([], "no arrival"), (["1", "x"], "line 2"), (["2", "1"], "sort"), (["-1"], "line 1"), (["inf"], "line 1")],
)
def test_a_trace_that_cannot_be_played_is_refused(lines: list[str], says: str) -> None:
    """The message names the line."""
    with pytest.raises(InvalidRequest, match=says):
        read_trace(lines)

"""engine.realtime.timing: what is declared is what is planned."""

from __future__ import annotations

import math
from itertools import islice, pairwise

import pytest

from vision_bench.engine.realtime.timing import (
    Fault,
    FaultKind,
    PlannedChunk,
    TimingSettings,
    plan_session,
    read_fault,
)


def plan(settings: TimingSettings, num_chunks: int = 12, session: int = 0) -> list[PlannedChunk]:
    """The whole session."""
    return list(plan_session(settings, num_chunks=num_chunks, session=session))


def test_without_jitter_the_declared_times_are_exact() -> None:
    """TTFC, a ramp from 80 % that is up at chunk 6, the steady interval, and a cheaper last chunk."""
    planned = plan(TimingSettings(ttfc_ms=1500, chunk_ms=1000), num_chunks=9)
    intervals = [chunk.interval_ms for chunk in planned]
    assert intervals == pytest.approx([1500, 800, 840, 880, 920, 960, 1000, 1000, 950])


def test_due_times_add_up() -> None:
    """Each is the one before and its own interval."""
    planned = plan(TimingSettings(jitter=0.3, seed=4))
    for before, after in pairwise(planned):
        assert before.due_ms is not None
        assert after.due_ms == pytest.approx(before.due_ms + after.interval_ms)
    assert planned[0].due_ms == planned[0].interval_ms


@pytest.mark.parametrize("ramp_chunks", [0, 1])
def test_a_ramp_can_be_left_out(ramp_chunks: int) -> None:
    """All chunks but the first and the last take the same."""
    planned = plan(TimingSettings(chunk_ms=100, ramp_chunks=ramp_chunks, terminal_share=1.0), num_chunks=5)
    assert [chunk.interval_ms for chunk in planned[1:]] == [100.0] * 4


def test_a_rollout_of_one_chunk_is_its_ttfc() -> None:
    """The first is not cheaper for being the last: it has no interval that a successor would have made longer."""
    assert [chunk.interval_ms for chunk in plan(TimingSettings(ttfc_ms=1500), num_chunks=1)] == [1500.0]


def test_the_second_of_two_chunks_is_the_last() -> None:
    """On the ramp's first step and cheaper for having no successor."""
    planned = plan(TimingSettings(ttfc_ms=1500, chunk_ms=1000), num_chunks=2)
    assert [chunk.interval_ms for chunk in planned] == pytest.approx([1500, 760])


def test_the_same_seed_gives_the_same_session() -> None:
    """Another seed, session or chunk draws something else; a longer rollout begins with the same chunks."""
    settings = TimingSettings(jitter=0.2, seed=7)
    assert plan(settings) == plan(settings)
    assert plan(settings) != plan(TimingSettings(jitter=0.2, seed=8))
    assert plan(settings, session=0) != plan(settings, session=1)
    assert plan(settings, num_chunks=20)[:11] == plan(settings, num_chunks=12)[:11]


def test_jitter_keeps_the_median() -> None:
    """Of 2001 intervals declared 100 ms with a spread of 0.2 the middle one is near 100, a sixth lies above 122."""
    settings = TimingSettings(chunk_ms=100, ramp_chunks=0, jitter=0.2, terminal_share=1.0)
    intervals = sorted(chunk.interval_ms for chunk in plan(settings, num_chunks=2002)[1:])
    assert intervals[1000] == pytest.approx(100, rel=0.02)
    assert sum(value > 100 * math.exp(0.2) for value in intervals) / 2001 == pytest.approx(0.159, abs=0.03)


def test_a_stall_is_in_its_interval_and_in_all_that_follows() -> None:
    """300 ms at chunk 3: that interval is longer, later ones are not, later due times are."""
    plain, stalled = plan(TimingSettings()), plan(TimingSettings(faults=(Fault(FaultKind.STALL, 3, 300.0),)))
    assert stalled[3].interval_ms == pytest.approx(plain[3].interval_ms + 300)
    assert stalled[4].interval_ms == plain[4].interval_ms
    assert (stalled[11].due_ms or 0) == pytest.approx((plain[11].due_ms or 0) + 300)
    assert stalled[3].fault is FaultKind.STALL


def test_a_stall_without_an_amount_never_ends() -> None:
    """No time is promised, and no chunk after it."""
    planned = plan(TimingSettings(faults=(Fault(FaultKind.STALL, 2),)))
    assert (len(planned), planned[-1].due_ms) == (3, None)


@pytest.mark.parametrize("kind", [FaultKind.ERROR, FaultKind.SHORT, FaultKind.DROP])
def test_what_ends_a_session_is_the_last_of_its_plan(kind: FaultKind) -> None:
    """At the time at which its chunk would have come."""
    plain, broken = plan(TimingSettings()), plan(TimingSettings(faults=(Fault(kind, 5),)))
    assert (len(broken), broken[-1].fault, broken[-1].due_ms) == (6, kind, plain[5].due_ms)


def test_an_empty_chunk_changes_no_time() -> None:
    """It is only marked."""
    plain, empty = plan(TimingSettings()), plan(TimingSettings(faults=(Fault(FaultKind.EMPTY, 5),)))
    assert [chunk.due_ms for chunk in empty] == [chunk.due_ms for chunk in plain]
    assert [chunk.index for chunk in empty if chunk.fault is FaultKind.EMPTY] == [5]


def test_a_fault_can_be_one_sessions() -> None:
    """The others run through."""
    settings = TimingSettings(faults=(read_fault("drop@2#1"),))
    assert [len(plan(settings, session=number)) for number in (0, 1, 2)] == [12, 3, 12]


def test_a_plan_is_worked_out_as_it_is_needed() -> None:
    """A request for a billion chunks costs nothing before they are due."""
    assert len(list(islice(plan_session(TimingSettings(), num_chunks=10**9, session=0), 3))) == 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("stall@12=3000", Fault(FaultKind.STALL, 12, 3000.0)),
        ("stall@0", Fault(FaultKind.STALL, 0)),
        ("stall@1=0.5#3", Fault(FaultKind.STALL, 1, 0.5, 3)),
        ("error@0", Fault(FaultKind.ERROR, 0)),
        ("short@10#0", Fault(FaultKind.SHORT, 10, None, 0)),
        ("empty@3", Fault(FaultKind.EMPTY, 3)),
        ("drop@8#1", Fault(FaultKind.DROP, 8, None, 1)),
    ],
)
def test_a_fault_reads_as_it_is_written(text: str, fault: Fault) -> None:
    """Kind, chunk, amount, session."""
    assert read_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stall", "KIND@CHUNK"),
        ("stall@", "KIND@CHUNK"),
        ("stall@-1", "KIND@CHUNK"),
        ("stall@1=", "KIND@CHUNK"),
        ("stall@1=-5", "KIND@CHUNK"),
        ("stall@1=nan", "KIND@CHUNK"),
        ("stall@1#x", "KIND@CHUNK"),
        ("", "KIND@CHUNK"),
        ("melt@1", "'melt' does not exist; choose one of stall, error, short, empty, drop"),
        ("drop@1=5", "only a stall"),
    ],
)
def test_what_is_no_fault_is_refused(text: str, says: str) -> None:
    """With the form or the kinds that there are."""
    with pytest.raises(ValueError, match=says):
        read_fault(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttfc_ms": -1},
        {"chunk_ms": math.nan},
        {"chunk_ms": math.inf},
        {"jitter": -0.1},
        {"jitter": 5},
        {"ramp_start": 1.5},
        {"terminal_share": -0.1},
        {"ramp_chunks": -1},
    ],
)
def test_times_that_cannot_be_kept_are_refused(wrong: dict[str, float]) -> None:
    """By name and value."""
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} is"):
        TimingSettings(**wrong)  # type: ignore[arg-type]

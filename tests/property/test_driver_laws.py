"""Laws of the driver, in virtual time, whatever the server does."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.bench.virtual_time import VirtualClock, run_virtual

from vision_bench.bench.arrivals import Process, make_schedule
from vision_bench.bench.driver import Driver, StepFacts
from vision_bench.bench.record import OK, Record

latencies = st.lists(st.one_of(st.floats(0, 3), st.just(1e6)), min_size=1, max_size=8)


@settings(max_examples=60)
@given(latencies, st.integers(1, 40), st.integers(0, 3), st.one_of(st.none(), st.integers(1, 4)))
def test_every_due_arrival_has_one_record(seconds: list[float], count: int, seed: int, cap: int | None) -> None:
    """One each, in any mixture of quick, slow, failing and silent answers; the step ends within window and drain."""
    records: list[Record] = []

    async def send(record: Record) -> None:
        await asyncio.sleep(seconds[record.index % len(seconds)])
        record.end(OK if record.index % 3 else "http_error")

    driver = Driver(make=Record, send=send, keep=records.append, clock=VirtualClock(), drain_seconds=2)
    facts = StepFacts(1)
    schedule = make_schedule(Process("poisson"), rate=count / 2, duration_seconds=2, seed=str(seed))
    run_virtual(driver.open_loop(facts, schedule, max_in_flight=cap))
    assert sorted(record.index for record in records) == list(range(count)) and facts.due == count
    assert all(record.outcome and record.stop_ns and record.stop_ns >= record.due_ns for record in records)
    assert all(record.dsp_ns == record.due_ns for record in records), "nobody's sending waits for an answer"
    assert facts.stop_ns - facts.start_ns <= 4.001e9
    assert facts.peak_in_flight <= count and driver.in_flight == 0


@settings(max_examples=40)
@given(latencies, st.integers(1, 5), st.integers(1, 30))
def test_closed_lanes_never_exceed_their_number(seconds: list[float], lanes: int, count: int) -> None:
    """At most ``lanes`` at once, at most ``count`` in all."""
    out = 0
    most = 0
    records: list[Record] = []

    async def send(record: Record) -> None:
        nonlocal out, most
        out += 1
        most = max(most, out)
        try:
            await asyncio.sleep(seconds[record.index % len(seconds)])
        finally:
            out -= 1
        record.end(OK)

    driver = Driver(make=Record, send=send, keep=records.append, clock=VirtualClock(), drain_seconds=2)
    facts = StepFacts(1)
    run_virtual(driver.closed_loop(facts, lanes=lanes, window_ns=5 * 10**9, max_requests=count))
    assert most <= lanes and len(records) == facts.due <= count
    assert facts.peak_in_flight == most

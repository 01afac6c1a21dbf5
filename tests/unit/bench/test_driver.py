"""The driver in virtual time: who is sent when, and that nothing due is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.bench.virtual_time import VirtualClock, run_virtual

from vision_bench.bench.arrivals import Process, Schedule, make_schedule
from vision_bench.bench.cameras import CameraLoad, Drop, camera_schedule
from vision_bench.bench.driver import Driver, StepFacts
from vision_bench.bench.record import DROPPED, OK, RUNNING, UNSENT, Record

Send = Callable[[Record], Awaitable[None]]


def constant(rate: float, seconds: float) -> Schedule:
    return make_schedule(Process("constant"), rate=rate, duration_seconds=seconds, seed="0")


def answering(seconds: float) -> Send:
    """A server that takes ``seconds`` for everything."""

    async def send(record: Record) -> None:
        await asyncio.sleep(seconds)
        record.end(OK)

    return send


class Bench:
    """A driver with a list for a run folder."""

    def __init__(self, send: Send, *, drain_seconds: float = 100, clock: VirtualClock | None = None) -> None:
        self.records: list[Record] = []
        self.facts = StepFacts(1)
        self.driver = Driver(
            make=Record,
            send=send,
            keep=self.records.append,
            clock=clock or VirtualClock(),
            drain_seconds=drain_seconds,
        )

    def open_loop(self, schedule: Schedule, **options: Any) -> list[Record]:
        run_virtual(self.driver.open_loop(self.facts, schedule, **options))
        return self.in_order()

    def closed_loop(self, **options: Any) -> list[Record]:
        run_virtual(self.driver.closed_loop(self.facts, **options))
        return self.in_order()

    def in_order(self) -> list[Record]:
        return sorted(self.records, key=lambda record: record.index)

    def outcomes(self) -> dict[str | None, int]:
        found: dict[str | None, int] = {}
        for record in self.records:
            found[record.outcome] = found.get(record.outcome, 0) + 1
        return found


def lag_ms(record: Record) -> float:
    assert record.dsp_ns is not None
    return (record.dsp_ns - record.due_ns) / 1e6


def test_a_slow_server_delays_no_sending() -> None:
    """Ten a second to a server that takes five seconds: each leaves at its due time, 20 at once by the end."""
    bench = Bench(answering(5))
    records = bench.open_loop(constant(10, 2))
    assert len(records) == 20
    assert [record.due_ns - bench.facts.start_ns for record in records] == list(constant(10, 2).offsets_ns)
    assert max(map(lag_ms, records)) < 0.001
    assert bench.facts.peak_in_flight == 20
    assert (bench.facts.due, bench.facts.is_complete, bench.outcomes()) == (20, True, {OK: 20})


def test_the_mean_in_flight_is_the_drivers_own_count() -> None:
    """10 a second for 0.5 s each are 5 in flight, less while it fills: 4.9 averaged over 10 s."""
    bench = Bench(answering(0.5))
    bench.open_loop(constant(10, 10))
    assert bench.facts.mean_in_flight == pytest.approx(4.9, abs=1e-6)
    assert bench.facts.cpu_share == pytest.approx(0.1, abs=0.001)
    assert (bench.facts.window_ns, bench.facts.stop_ns > bench.facts.start_ns) == (10**10, True)


def test_what_does_not_end_is_let_go_of_and_kept_with_its_age() -> None:
    """A server that never answers: the step ends a drain after its window, every record says it was running."""
    bench = Bench(answering(1e6), drain_seconds=3)
    records = bench.open_loop(constant(10, 2))
    assert bench.outcomes() == {"running": 20}
    assert (bench.facts.stop_ns - bench.facts.start_ns) / 1e9 == pytest.approx(5, abs=0.01)
    assert [round((record.stop_ns or 0) - record.due_ns, -7) for record in records][::19] == [5 * 10**9, 31 * 10**8]


def test_with_a_cap_the_wait_is_in_the_record() -> None:
    """10 a second, one at a time, half a second each: 8 requests wait 0, 0.4, 0.8 ... s before they are sent."""
    sent: list[float] = []

    async def send(record: Record) -> None:
        sent.append((clock.now_ns() - record.due_ns) / 1e9)
        await asyncio.sleep(0.5)
        record.end(OK)

    clock = VirtualClock()
    bench = Bench(send, clock=clock)
    records = bench.open_loop(constant(10, 0.8), max_in_flight=1)
    assert sent == pytest.approx([0.4 * number for number in range(8)], abs=1e-6)
    assert max(map(lag_ms, records)) < 0.001, "the driver itself was on time"
    waits = [((record.stop_ns or 0) - record.due_ns) / 1e9 for record in records]
    assert sum(waits) / 8 == pytest.approx(1.9, abs=1e-3)


def test_what_waits_for_the_cap_at_the_end_was_never_sent() -> None:
    """It is unsent, not running: the server has not seen it."""
    bench = Bench(answering(1e6), drain_seconds=1)
    bench.open_loop(constant(10, 1), max_in_flight=4)
    assert bench.outcomes() == {"running": 4, "unsent": 6}


def test_a_driver_that_is_hopelessly_late_accounts_for_what_it_could_not_send() -> None:
    """Sending that blocks the loop for a second each: after window and drain the rest is unsent, and recorded."""

    class Stuck(VirtualClock):
        async def sleep_until(self, when_ns: int) -> None:
            await super().sleep_until(when_ns)
            await asyncio.sleep(1)

    bench = Bench(answering(0), drain_seconds=3, clock=Stuck())
    records = bench.open_loop(constant(10, 2))
    found = bench.outcomes()
    assert found[OK] + found["unsent"] == 20 and found["unsent"] > 10
    assert [record.index for record in records] == list(range(20))
    assert lag_ms(records[3]) > 2000


def test_a_bug_in_sending_is_one_record() -> None:
    """It has a class of its own, and the run goes on."""

    async def send(record: Record) -> None:
        if record.index == 1:
            raise KeyError("clip")
        record.end(OK)

    bench = Bench(send)
    records = bench.open_loop(constant(10, 0.5))
    assert bench.outcomes() == {OK: 4, "harness_error": 1}
    assert records[1].detail == "KeyError: 'clip'"


def test_a_folder_that_cannot_be_written_ends_the_run() -> None:
    """The disk's error comes out at once, not after the last request."""

    def keep(_: Record) -> None:
        raise OSError(28, "No space left on device")

    driver = Driver(make=Record, send=answering(0), keep=keep, clock=VirtualClock(), drain_seconds=1)
    facts = StepFacts(1)
    with pytest.raises(ExceptionGroup) as caught:
        run_virtual(driver.open_loop(facts, constant(10, 100)))
    assert isinstance(caught.value.exceptions[0], OSError)
    assert facts.due == 1 and not facts.is_complete


async def interrupted(bench: Bench, running: Any, after_seconds: float) -> None:
    task = asyncio.ensure_future(running)
    await asyncio.sleep(after_seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_interrupt_leaves_a_record_of_all_that_was_due() -> None:
    """After 1 s of 10 a second 10 were due; those out are running, the step is not complete, its window is 1 s."""
    bench = Bench(answering(0.35))
    run_virtual(interrupted(bench, bench.driver.open_loop(bench.facts, constant(10, 5)), 1.0))
    assert bench.outcomes() == {OK: 7, "running": 3}
    assert (bench.facts.due, bench.facts.is_complete) == (10, False)
    assert bench.facts.window_ns == pytest.approx(0.98e9, rel=0.01)


def test_closed_lanes_send_when_they_have_their_answer() -> None:
    """Two lanes, half a second each, for 3 s: 12 requests, never more than two at once, and the last ones finish."""
    bench = Bench(answering(0.5))
    records = bench.closed_loop(lanes=2, window_ns=3 * 10**9)
    assert (len(records), bench.facts.peak_in_flight, bench.outcomes()) == (12, 2, {OK: 12})
    assert bench.facts.mean_in_flight == pytest.approx(2, abs=0.01)
    assert max(map(lag_ms, records)) == 0


def test_closed_lanes_stop_at_a_number_of_requests() -> None:
    """Seven by three lanes; the window ends when the last is answered."""
    bench = Bench(answering(0.5))
    records = bench.closed_loop(lanes=3, window_ns=None, max_requests=7)
    assert [record.index for record in records] == list(range(7))
    assert bench.facts.window_ns == pytest.approx(1.5e9, rel=0.01)
    early = Bench(answering(0.5))
    early.closed_loop(lanes=3, window_ns=100 * 10**9, max_requests=7)
    assert early.facts.window_ns == pytest.approx(1.5e9, rel=0.01)


def test_a_closed_lane_lets_go_at_the_end_too() -> None:
    """A server that never answers holds nobody longer than window and drain."""
    bench = Bench(answering(1e6), drain_seconds=2)
    bench.closed_loop(lanes=3, window_ns=10**9)
    assert bench.outcomes() == {"running": 3}
    assert (bench.facts.stop_ns - bench.facts.start_ns) / 1e9 == pytest.approx(3, abs=0.01)


def test_a_closed_lane_does_not_hammer_a_server_that_refuses() -> None:
    """A failed request costs its lane a tenth of a second."""

    async def send(record: Record) -> None:
        record.end("connect_failed")

    bench = Bench(send)
    assert len(bench.closed_loop(lanes=1, window_ns=10**9)) == 10


def test_ordinals_go_on_over_steps() -> None:
    """What is sent depends on the place in the run, so that no step repeats another's bodies."""
    bench = Bench(answering(0))
    bench.open_loop(constant(10, 0.3))
    bench.facts = StepFacts(2)
    bench.open_loop(constant(10, 0.3))
    assert [(record.step, record.index, record.ordinal) for record in bench.records] == [
        (1, 0, 0), (1, 1, 1), (1, 2, 2), (2, 0, 3), (2, 1, 4), (2, 2, 5),
    ]  # fmt: skip


def cameras(bench: Bench, count: int, *, drop: Drop, seconds: float = 2, period_ms: int = 100) -> list[Record]:
    load = CameraLoad(count, period_ms * 10**6, drop, period_ms * 10**6)
    run_virtual(bench.driver.cameras(bench.facts, camera_schedule(load, duration_seconds=seconds, seed="0"), load))
    return bench.in_order()


@pytest.mark.parametrize(
    ("drop", "waits_ms"),
    [("newest", (0, 170)), ("busy", (0, 0)), ("none", (0, 2470))],
)
def test_a_camera_asks_one_question_at_a_time(drop: Drop, waits_ms: tuple[float, float]) -> None:
    """Answers take 230 ms, frames come every 100: nobody is asked twice at once; what is dropped is on record, and
    what a frame waited for its camera is not the harness's lag.
    """
    running: dict[int | None, int] = {}
    sent: list[float] = []

    async def send(record: Record) -> None:
        running[record.camera] = running.get(record.camera, 0) + 1
        assert running[record.camera] == 1
        sent.append((asyncio.get_running_loop().time() * 1e9 - record.due_ns) / 1e6)
        await asyncio.sleep(0.23)
        running[record.camera] -= 1
        record.end(OK)

    bench = Bench(send)
    records = cameras(bench, 3, drop=drop)
    assert len(records) == bench.facts.due == 60 and bench.facts.is_complete
    assert {record.camera for record in records} == {0, 1, 2}
    assert max(map(lag_ms, records)) < 0.001
    assert (min(sent), max(sent)) == pytest.approx(waits_ms, abs=1)
    assert bench.outcomes().get(DROPPED, 0) == {"newest": 30, "busy": 39, "none": 0}[drop]
    assert bench.facts.peak_in_flight >= 3 and bench.driver.in_flight == 0


def test_a_camera_that_keeps_up_drops_nothing() -> None:
    """50 ms for an answer, 100 between frames: every frame is sent when it is there."""
    bench = Bench(answering(0.05))
    records = cameras(bench, 2, drop="newest")
    assert bench.outcomes() == {OK: 40}
    assert bench.facts.mean_in_flight == pytest.approx(1.0, abs=0.02)
    assert [record.stop_ns - record.due_ns for record in records if record.stop_ns] == [50_000_000] * 40


def test_frames_that_never_got_their_turn_are_unsent() -> None:
    """A server that never answers: one frame of each camera still runs, the newest waits, all others were dropped."""
    bench = Bench(answering(10_000), drain_seconds=1)
    cameras(bench, 2, drop="newest")
    assert bench.outcomes() == {RUNNING: 2, UNSENT: 2, DROPPED: 36}
    assert bench.driver.in_flight == 0

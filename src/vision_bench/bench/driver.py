"""Sends requests when they are due. It knows nothing of what a request is: it is given a way to make and send one.

Open loop: at the due time, whatever is still out; a slow answer delays nobody's sending (no coordinated omission).
Closed loop: N lanes, each sending its next request when it has the answer to the last. Both stop within a bound, and
every arrival that was due has a record, sent or not, finished or not.
"""

from __future__ import annotations

import asyncio
import contextlib
from array import array
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from vision_bench.bench.arrivals import Schedule
from vision_bench.bench.cameras import CameraLoad, Mailbox
from vision_bench.bench.clock import Clock
from vision_bench.bench.gauge import Gauge
from vision_bench.bench.record import DROPPED, HARNESS_ERROR, OK, RUNNING, UNSENT, Record

R = TypeVar("R", bound=Record)

LEAD_NS = 20_000_000
"""From making a step's tasks to its first arrival."""
WATCH_SECONDS = 0.02
FAILURE_PAUSE_SECONDS = 0.1
"""So long waits a lane whose request failed: a server that is gone would else be asked thousands of times a second."""


@dataclass(slots=True)
class StepFacts:
    """What the driver knows of a step besides its records; filled in as it runs, so that a cut-off step has some.

    Attributes:
        start_ns, window_ns: arrivals were due in ``[start, start + window)``.
        stop_ns: when the last request was over.
        is_complete: it ran to its end; False after Ctrl-C.
        due: arrivals whose time came.
        mean_in_flight: requests between dispatch and end, averaged over the window by the driver's own count.
        loop_lag_ns: how late the event loop was with a timer, asked every 20 ms. A timer's grain of 1 ms is in it.
        cpu_share: processor time of this process over wall time, within the window.
    """

    step: int
    start_ns: int = 0
    window_ns: int = 0
    stop_ns: int = 0
    is_complete: bool = False
    due: int = 0
    mean_in_flight: float = 0.0
    peak_in_flight: int = 0
    cpu_share: float = 0.0
    loop_lag_ns: array[int] = field(default_factory=lambda: array("q"))


class Driver(Generic[R]):
    """Runs the steps of one run, one after the other.

    Args:
        make: the record's class: called with step, index, ordinal and due_ns.
        send: sends what a record stands for and fills the record in, whatever happens; only a bug raises.
        keep: takes a record when its request is over. What it raises ends the run.
        drain_seconds: how long after the last arrival answers are waited for.
        first_ordinal: of the next request; a resumed run goes on counting.
    """

    def __init__(
        self,
        *,
        make: Callable[..., R],
        send: Callable[[R], Awaitable[None]],
        keep: Callable[[R], None],
        clock: Clock,
        drain_seconds: float,
        first_ordinal: int = 0,
    ) -> None:
        self._make = make
        self._send = send
        self._keep = keep
        self._clock = clock
        self._drain_seconds = drain_seconds
        self._gauge = Gauge()
        self.ordinal = first_ordinal

    @property
    def in_flight(self) -> int:
        """Requests dispatched and not over."""
        return self._gauge.count

    async def open_loop(self, facts: StepFacts, schedule: Schedule, *, max_in_flight: int | None = None) -> None:
        """Send at every due time.

        Args:
            max_in_flight: at most this many at once; those that are due wait here, in order, and their scheduled
                latency says so.

        Raises:
            ExceptionGroup: ``keep`` failed.
        """
        slots = None if max_in_flight is None else asyncio.Semaphore(max_in_flight)
        start_ns = self._begin(facts, schedule.window_ns)
        last_send_ns = start_ns + schedule.window_ns + int(self._drain_seconds * 1e9)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._finish, facts)
            stack.callback(self._account_unsent, facts, schedule)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            watch = group.create_task(self._watch(facts))
            tasks: set[asyncio.Task[None]] = set()
            for offset_ns in schedule.offsets_ns:
                await self._clock.sleep_until(start_ns + offset_ns)
                if self._clock.now_ns() > last_send_ns:
                    break  # hopelessly late: the rest is accounted for as unsent
                record = self._next(facts, start_ns + offset_ns)
                task = group.create_task(self._run(record, slots))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            await self._clock.sleep_until(start_ns + schedule.window_ns)
            self._close_window(facts)
            await self._drain(tasks)
            watch.cancel()
            facts.is_complete = True

    async def cameras(self, facts: StepFacts, schedule: Schedule, load: CameraLoad) -> None:
        """Frames of live cameras: one question a camera at a time, the rest as its drop policy says.

        Raises:
            ExceptionGroup: ``keep`` failed.
        """

        def drop(record: R) -> None:
            record.end(DROPPED)
            self._leave(record)

        boxes: list[Mailbox[R]] = [Mailbox(load.drop, drop) for _ in range(load.count)]
        start_ns = self._begin(facts, schedule.window_ns)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._finish, facts)
            stack.callback(self._account_unsent, facts, schedule)
            stack.callback(self._account_waiting, boxes)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            watch = group.create_task(self._watch(facts))
            tasks: set[asyncio.Task[None]] = set()
            for index, offset_ns in enumerate(schedule.offsets_ns):
                await self._clock.sleep_until(start_ns + offset_ns)
                record = self._next(facts, start_ns + offset_ns)
                record.camera = load.camera(index)
                self._enter(record)
                box = boxes[record.camera]
                if box.offer(record) is not None:
                    task = group.create_task(self._watch_on(record, box))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            await self._clock.sleep_until(start_ns + schedule.window_ns)
            self._close_window(facts)
            await self._drain(tasks)
            watch.cancel()
            facts.is_complete = True

    async def _watch_on(self, record: R, box: Mailbox[R]) -> None:
        """Ask about a camera's frame, then about the one that waits, until none does."""
        frame: R | None = record
        while frame is not None:
            await self._send_out(frame, None)
            frame = box.next()

    def _account_waiting(self, boxes: Sequence[Mailbox[R]]) -> None:
        """Frames that never got their turn."""
        for box in boxes:
            for record in box.empty():
                record.end(UNSENT)
                self._leave(record)

    async def closed_loop(
        self, facts: StepFacts, *, lanes: int, window_ns: int | None, max_requests: int | None = None
    ) -> None:
        """Keep ``lanes`` requests out until the window ends or ``max_requests`` have been sent.

        Raises:
            ExceptionGroup: ``keep`` failed.
        """
        start_ns = self._begin(facts, window_ns)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._finish, facts)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            watch = group.create_task(self._watch(facts))
            await self._clock.sleep_until(start_ns)
            end_ns = None if window_ns is None else start_ns + window_ns
            tasks = {group.create_task(self._lane(facts, end_ns, max_requests)) for _ in range(lanes)}
            if window_ns is None:
                await asyncio.wait(tasks)
            else:
                await asyncio.wait(tasks, timeout=window_ns / 1e9)
                if all(task.done() for task in tasks):  # all were sent before the time was up
                    facts.window_ns = min(window_ns, self._clock.now_ns() - start_ns)
            self._close_window(facts)
            await self._drain(tasks)
            watch.cancel()
            facts.is_complete = True

    async def _lane(self, facts: StepFacts, end_ns: int | None, max_requests: int | None) -> None:
        while max_requests is None or facts.due < max_requests:
            now_ns = self._clock.now_ns()
            if end_ns is not None and now_ns >= end_ns:
                return
            record = self._next(facts, now_ns)
            await self._run(record, None)
            if record.outcome != OK:
                await asyncio.sleep(FAILURE_PAUSE_SECONDS)

    def _next(self, facts: StepFacts, due_ns: int) -> R:
        record = self._make(step=facts.step, index=facts.due, ordinal=self.ordinal, due_ns=due_ns)
        facts.due += 1
        self.ordinal += 1
        return record

    async def _run(self, record: R, slots: asyncio.Semaphore | None) -> None:
        self._enter(record)
        await self._send_out(record, slots)

    def _enter(self, record: R) -> None:
        """It is in flight: on its way, or waiting in here for a place."""
        record.dsp_ns = self._clock.now_ns()
        self._gauge.change(record.dsp_ns, +1)

    def _leave(self, record: R) -> None:
        record.stop_ns = self._clock.now_ns()
        self._gauge.change(record.stop_ns, -1)
        self._keep(record)

    async def _send_out(self, record: R, slots: asyncio.Semaphore | None) -> None:
        if_cut_off = UNSENT
        try:
            async with slots or contextlib.nullcontext():
                if_cut_off = RUNNING
                await self._send(record)
        except asyncio.CancelledError:
            record.end(if_cut_off)
            raise
        except Exception as problem:  # a bug of ours is one record's, not the run's
            record.end(HARNESS_ERROR, f"{type(problem).__name__}: {problem}")
        finally:
            self._leave(record)

    # --- the step around them

    def _begin(self, facts: StepFacts, window_ns: int | None) -> int:
        start_ns = self._clock.now_ns() + LEAD_NS
        facts.start_ns, facts.window_ns = start_ns, window_ns or 0
        self._gauge.open(start_ns, start_ns + (window_ns if window_ns is not None else 1 << 62))
        self._cpu_seconds = self._clock.cpu_seconds()
        self._is_window_open = True
        return start_ns

    def _close_window(self, facts: StepFacts) -> None:
        if not self._is_window_open:
            return
        self._is_window_open = False
        now_ns = self._clock.now_ns()
        elapsed_ns = now_ns - facts.start_ns
        facts.window_ns = facts.window_ns or max(elapsed_ns, 1)
        facts.mean_in_flight = self._gauge.mean(now_ns)
        facts.peak_in_flight = self._gauge.peak
        facts.cpu_share = (self._clock.cpu_seconds() - self._cpu_seconds) / max(elapsed_ns / 1e9, 1e-9)

    def _finish(self, facts: StepFacts) -> None:
        facts.stop_ns = self._clock.now_ns()
        if not facts.is_complete and self._is_window_open:
            facts.window_ns = max(1, min(facts.window_ns or 1 << 62, facts.stop_ns - facts.start_ns))
        self._close_window(facts)

    def _account_unsent(self, facts: StepFacts, schedule: Schedule) -> None:
        """Arrivals whose time has come and that were never sent get a record too."""
        now_ns = self._clock.now_ns()
        for offset_ns in schedule.offsets_ns[facts.due :]:
            if facts.start_ns + offset_ns > now_ns:
                return
            record = self._next(facts, facts.start_ns + offset_ns)
            record.end(UNSENT)
            record.stop_ns = now_ns
            self._keep(record)

    async def _drain(self, tasks: set[asyncio.Task[None]]) -> None:
        """Wait for what is out, then let go of it."""
        if tasks:
            _, running = await asyncio.wait(tasks, timeout=self._drain_seconds)
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    async def _watch(self, facts: StepFacts) -> None:
        """Note how late the event loop is with its timers."""
        while True:
            due_ns = self._clock.now_ns() + int(WATCH_SECONDS * 1e9)
            await asyncio.sleep(WATCH_SECONDS)
            facts.loop_lag_ns.append(self._clock.now_ns() - due_ns)

"""The steps of a run against one open target: each is run, its records kept, its progress told."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from vision_bench.bench.clock import Clock
from vision_bench.bench.driver import Driver, StepFacts
from vision_bench.bench.kind import Kind, Link
from vision_bench.bench.plan import Program, Step
from vision_bench.bench.record import OK, Record
from vision_bench.bench.rundir import RunFolder, read_steps
from vision_bench.stats import percentile

Json = dict[str, Any]

WARM_UP_LANES = 4
SETTLE_SECONDS = 0.1
"""A server counts a request a little after its last byte."""
TICK_SECONDS = 0.5
HEADLINE_SIZE = 200
"""The line of progress speaks of this many answers, the last ones."""


@dataclass(slots=True)
class Status:
    """How a step stands, for the line of progress. ``headline``: medians over the last answers, ms, by name."""

    step: str
    number: int
    steps: int
    seconds: float = 0.0
    window_seconds: float | None = None
    offered_rate: float | None = None
    sent: int = 0
    ok: int = 0
    in_flight: int = 0
    failures: dict[str, int] | None = None
    headline: dict[str, float] | None = None
    note: str = ""


class Session:
    """One open target, one folder, and the steps between them."""

    def __init__(
        self,
        kind: Kind,
        link: Link,
        folder: RunFolder,
        clock: Clock,
        *,
        drain_seconds: float,
        first_ordinal: int = 0,
        on_status: Callable[[Status], None] | None = None,
    ) -> None:
        self._kind = kind
        self._link = link
        self._folder = folder
        self._clock = clock
        self._on_status = on_status
        self._recent: dict[str, deque[float]] = {}
        self._counts: Counter[str] = Counter()
        logs = read_steps(folder.path)
        self._is_warm = False
        self._done = {log.begin["plan"] for log in logs if log.is_complete}
        self._next_step = max((log.step for log in logs), default=0) + 1
        earlier = max((record.ordinal for record in kind.read(folder.path)), default=-1)
        self._driver: Driver[Record] = Driver(
            make=kind.record,
            send=link.send,
            keep=self._keep,
            clock=clock,
            drain_seconds=drain_seconds,
            first_ordinal=max(earlier + 1, first_ordinal),
        )

    async def run(self, program: Program, warm_up: int) -> None:
        """Whatever of the program is not done yet; the warm-up comes before the first step that is run."""
        # The bodies and everything imported so far live to the end: the collector need not walk them in a step.
        gc.collect()
        gc.freeze()
        try:
            for index in itertools.count():
                step = program.step(index)
                if step is None:
                    return
                if index in self._done:
                    continue
                if warm_up and not self._is_warm:
                    await self._warm_up(warm_up)
                self._is_warm = True
                await self._step(index, step, Status(step.name, index + 1, program.size))
                self._done.add(index)
        finally:
            gc.unfreeze()

    async def _warm_up(self, count: int) -> None:
        self._link.ready(self._driver.ordinal, count)
        facts = self._begin({"plan": None, "name": "warm-up"})
        with self._ending(facts):
            lanes = 1 if self._kind.has_long_requests else min(WARM_UP_LANES, count)
            await self._driver.closed_loop(facts, lanes=lanes, window_ns=None, max_requests=count)

    async def _step(self, index: int, step: Step, status: Status) -> None:
        if step.variant is not None:
            await self._link.use(step.variant)
        self._link.ready(self._driver.ordinal, step.count or 0)
        facts = self._begin({"plan": index} | step.facts())
        self._recent.clear()
        self._counts.clear()
        status.offered_rate = None if step.schedule is None else step.schedule.rate
        status.window_seconds = None if step.window_ns is None else step.window_ns / 1e9
        before = await self._link.observe()
        with self._ending(facts):
            async with self._telling(status, facts):
                if step.cameras is not None and step.schedule is not None:
                    await self._driver.cameras(facts, step.schedule, step.cameras)
                elif step.schedule is not None:
                    await self._driver.open_loop(facts, step.schedule, max_in_flight=step.concurrency)
                else:
                    await self._driver.closed_loop(
                        facts, lanes=step.concurrency or 1, window_ns=step.window_ns, max_requests=step.max_requests
                    )
        if before is not None:
            await asyncio.sleep(SETTLE_SECONDS)
            after = await self._link.observe()
            if after is not None:
                self._folder.note_server(facts.step, self._link.told(before, after))

    def _begin(self, named: Json) -> StepFacts:
        facts = StepFacts(self._next_step)
        self._next_step += 1
        self._folder.begin_step(facts.step, named | {"begin_ns": self._clock.now_ns()})
        return facts

    @contextlib.contextmanager
    def _ending(self, facts: StepFacts) -> Any:
        """Note the step's end, whatever ends it; a fault of the folder comes out as itself."""
        try:
            yield
        except ExceptionGroup as group:  # the driver's tasks: the first fault is what ended the others
            raise group.exceptions[0] from None
        finally:
            self._folder.end_step(facts.step, _end_facts(facts))

    def _keep(self, record: Record) -> None:
        self._folder.keep(record)
        self._counts[record.outcome or ""] += 1
        if record.outcome == OK:
            for name, value in self._kind.headline(record).items():
                if value is not None:
                    self._recent.setdefault(name, deque(maxlen=HEADLINE_SIZE)).append(value)

    @contextlib.asynccontextmanager
    async def _telling(self, status: Status, facts: StepFacts) -> AsyncIterator[None]:
        """Tell how the step stands, twice a second."""
        if self._on_status is None:
            yield
            return
        task = asyncio.create_task(self._tell(status, facts, self._on_status))
        try:
            yield
        finally:
            task.cancel()

    async def _tell(self, status: Status, facts: StepFacts, on_status: Callable[[Status], None]) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            status.seconds = max(0.0, (self._clock.now_ns() - facts.start_ns) / 1e9)
            status.sent, status.ok = facts.due, self._counts[OK]
            status.in_flight = self._driver.in_flight
            status.failures = {name: count for name, count in self._counts.items() if name != OK}
            status.headline = {name: percentile(values, 0.5) for name, values in self._recent.items()}
            status.note = self._link.progress()
            on_status(status)


def _end_facts(facts: StepFacts) -> Json:
    lags = sorted(facts.loop_lag_ns)
    return {
        "start_ns": facts.start_ns,
        "window_ns": facts.window_ns,
        "stop_ns": facts.stop_ns,
        "is_complete": facts.is_complete,
        "due": facts.due,
        "mean_in_flight": facts.mean_in_flight,
        "peak_in_flight": facts.peak_in_flight,
        "cpu_share": facts.cpu_share,
        "loop_lag_count": len(lags),
        "loop_lag_p99_ms": percentile(lags, 0.99) / 1e6 if lags else None,
        "loop_lag_max_ms": lags[-1] / 1e6 if lags else None,
    }

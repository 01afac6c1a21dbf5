"""A workload under a plan of steps: warm up, run each step, keep everything, summarise."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vision_bench.bench.arrivals import read_trace
from vision_bench.bench.clock import MonotonicClock
from vision_bench.bench.driver import Driver, StepFacts
from vision_bench.bench.environment import describe
from vision_bench.bench.kinds import Kind, Link, Loaded, LoadOptions, kind_named
from vision_bench.bench.plan import LoadPlan, Step, make_steps
from vision_bench.bench.record import OK, Record
from vision_bench.bench.rundir import (
    SUMMARY,
    RunFolder,
    StepLog,
    check_new,
    read_manifest,
    read_records,
    read_steps,
    write_json,
)
from vision_bench.bench.workload import read_workload
from vision_bench.errors import InvalidRequest
from vision_bench.stats import percentile

Json = dict[str, Any]

SCHEMA = 1
DRAIN_SECONDS = 60.0
"""How long after a step's last arrival answers are waited for, unless the workload's own timeout is shorter."""
WARM_UP_LANES = 4
SETTLE_SECONDS = 0.1
"""A server counts a request a little after its last byte."""
TICK_SECONDS = 0.5
HEADLINE_SIZE = 200
"""The line of progress speaks of this many answers, the last ones."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A run as it was asked for."""

    workload: Path
    target: str
    out: Path
    plan: LoadPlan
    warm_up: int = 0
    slo: str | None = None
    batch_size: int | None = None
    api_key: str | None = None
    is_resumed: bool = False


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


def run_to_end(options: RunOptions, *, on_status: Callable[[Status], None] | None = None) -> Json:
    """As ``run``, in an event loop of its own: uvloop's where there is one, which takes half of asyncio's time for a
    piece of a stream and so stamps what comes next sooner.
    """
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):  # it is not on every system
        from uvloop import new_event_loop  # noqa: PLC0415
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(run(options, on_status=on_status))


async def run(options: RunOptions, *, on_status: Callable[[Status], None] | None = None) -> Json:
    """Run everything and give the summary, which lies in the folder too. Cancelled, it leaves a readable folder.

    Raises:
        InvalidRequest: workload, options or folder are wrong; nothing was written.
        ConnectFailed, UnknownName: the target cannot be used; nothing was written.
        OperatorError: the folder can be written no more.
    """
    file = read_workload(options.workload)
    kind = kind_named(file.kind)
    steps = make_steps(options.plan)
    if not options.is_resumed:
        check_new(options.out)
    loaded = kind.load(
        file,
        LoadOptions(
            options.target,
            seed=str(options.plan.seed),
            slo=options.slo,
            batch_size=options.batch_size,
            api_key=options.api_key,
        ),
    )
    if loaded.needs_counts and any(step.count is None for step in steps):
        raise InvalidRequest("unique clips are made before a step; say how many it takes with --requests")
    manifest = _manifest(options, file.kind, loaded, steps)
    if options.is_resumed:
        manifest = _same_run(options.out, manifest)
    with MonotonicClock() as clock:
        async with loaded.open(clock, manifest["run_id"]) as link:
            manifest["server"] = await link.check() | manifest.get("server", {})
            folder = RunFolder.reopen(options.out) if options.is_resumed else RunFolder.create(options.out, manifest)
            with folder:
                session = _Session(kind, link, folder, clock, loaded, on_status)
                try:
                    await session.run(steps, options.warm_up)
                finally:
                    summary = summarise_folder(options.out)
                    write_json(options.out / SUMMARY, summary)
    return summary


def summarise_folder(path: Path) -> Json:
    """The summary of a run folder, made from its records alone."""
    manifest = read_manifest(path)
    kind = kind_named(manifest["kind"])
    last: dict[int, StepLog] = {}
    for log in read_steps(path):
        if log.begin["plan"] is not None:  # warming up belongs to no step
            last[log.begin["plan"]] = log
    logs = {log.step: log for log in last.values()}
    ends = dict.fromkeys(logs, 0)
    if any(log.end is None for log in logs.values()):
        for record in read_records(path, kind.record):
            ends[record.step] = max(ends.get(record.step, 0), record.stop_ns or 0)
    tallies = {step: kind.tally(manifest, log, ends[step]) for step, log in logs.items()}
    for record in read_records(path, kind.record):
        if record.step in tallies:
            tallies[record.step].add(record)
    steps = [_named(manifest, log) | tallies[step].summary() for step, log in logs.items()]
    expected = manifest["workload"]["values"]
    return {
        "schema": SCHEMA,
        "kind": manifest["kind"],
        "run_id": manifest["run_id"],
        "started_at": manifest["started_at"],
        "workload": {"name": manifest["workload"]["name"], "fingerprint": manifest["workload"]["fingerprint"]},
        "target": manifest["workload"]["url"],
        "is_complete": len(steps) == len(manifest["plan"]) and all(step["is_complete"] for step in steps),
        "expected": _expected(expected["expected_rate"], expected["expected_concurrency"], steps),
        "steps": steps,
    }


def _named(manifest: Json, log: StepLog) -> Json:
    """What every number of a step must be read with."""
    begin = log.begin
    shown = ("name", "load", "round", "rate", "concurrency", "arrivals", "schedule_sha256")
    return {"step": log.step, **{key: begin[key] for key in shown}, **manifest["labels"]}


def _expected(rate: float | None, concurrency: int | None, steps: list[Json]) -> Json | None:
    """Whether the run reached the load that production brings; None where the workload does not say it."""
    if rate is None and concurrency is None:
        return None
    reached = [
        (rate is None or (step["offered_rate"] or 0) >= rate)
        and (concurrency is None or (step["in_flight"]["mean"] or 0) >= concurrency)
        for step in steps
    ]
    is_stable = any(is_met and step["verdict"] == "STABLE" for is_met, step in zip(reached, steps, strict=True))
    return {"rate": rate, "concurrency": concurrency, "is_reached": any(reached), "is_stable_there": is_stable}


def _manifest(options: RunOptions, kind: str, loaded: Loaded, steps: list[Step]) -> Json:
    plan = asdict(options.plan) | {"arrivals": options.plan.arrivals.label, "trace": None}
    return {
        "schema": SCHEMA,
        "kind": kind,
        "run_id": f"vb-{secrets.token_hex(4)}",
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "workload": loaded.facts,
        "labels": loaded.labels,
        "load": plan | {"warm_up": options.warm_up},
        "plan": [step.facts() for step in steps],
        "environment": describe(),
    }


def _same_run(path: Path, manifest: Json) -> Json:
    """The manifest in the folder, if it is of the run that was asked for.

    Raises:
        InvalidRequest: it is of another; the message says what differs.
    """
    earlier = read_manifest(path)
    for name in ("kind", "workload", "plan"):
        if earlier.get(name) != manifest[name]:
            raise InvalidRequest(
                f"{path} holds another run: its {name} differs; repeat its options, or give another --out"
            )
    return earlier


class _Session:
    """One open target, one folder, and the steps between them."""

    def __init__(  # noqa: PLR0917
        self,
        kind: Kind,
        link: Link,
        folder: RunFolder,
        clock: MonotonicClock,
        loaded: Loaded,
        on_status: Callable[[Status], None] | None,
    ) -> None:
        self._kind = kind
        self._link = link
        self._folder = folder
        self._clock = clock
        self._on_status = on_status
        self._recent: dict[str, deque[float]] = {}
        self._counts: Counter[str] = Counter()
        logs = read_steps(folder.path)
        self._done = {log.begin["plan"] for log in logs if log.is_complete}
        self._next_step = max((log.step for log in logs), default=0) + 1
        earlier = max((record.ordinal for record in read_records(folder.path, kind.record)), default=-1)
        self._driver: Driver[Record] = Driver(
            make=kind.record,
            send=link.send,
            keep=self._keep,
            clock=clock,
            drain_seconds=min(DRAIN_SECONDS, loaded.timeout_seconds),
            first_ordinal=earlier + 1,
        )

    async def run(self, steps: list[Step], warm_up: int) -> None:
        """Whatever of the plan is not done yet."""
        left = [(index, step) for index, step in enumerate(steps) if index not in self._done]
        if not left:
            return
        if warm_up:
            await self._warm_up(warm_up)
        # The bodies and everything imported so far live to the end: the collector need not walk them in a step.
        gc.collect()
        gc.freeze()
        try:
            for index, step in left:
                await self._step(index, step, Status(step.name, index + 1, len(steps)))
        finally:
            gc.unfreeze()

    async def _warm_up(self, count: int) -> None:
        self._link.ready(self._driver.ordinal, count)
        facts = self._begin({"plan": None, "name": "warm-up"})
        with self._ending(facts):
            await self._driver.closed_loop(facts, lanes=min(WARM_UP_LANES, count), window_ns=None, max_requests=count)

    async def _step(self, index: int, step: Step, status: Status) -> None:
        self._link.ready(self._driver.ordinal, step.count or 0)
        facts = self._begin({"plan": index} | step.facts())
        self._recent.clear()
        self._counts.clear()
        status.offered_rate = None if step.schedule is None else step.schedule.rate
        status.window_seconds = None if step.window_ns is None else step.window_ns / 1e9
        before = await self._link.observe()
        with self._ending(facts):
            async with self._telling(status, facts):
                if step.schedule is not None:
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


def load_trace(path: Path) -> list[float]:
    """The times of a trace file.

    Raises:
        InvalidRequest: it cannot be read, or is no trace.
    """
    try:
        return read_trace(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"trace {path} cannot be read: {problem}") from problem
    except InvalidRequest as problem:
        raise InvalidRequest(f"{path}: {problem}") from problem

"""A workload under a plan of steps: prepare, open, run what is not done, summarise."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from vision_bench.bench.arrivals import read_trace
from vision_bench.bench.clock import MonotonicClock
from vision_bench.bench.kind import LoadOptions
from vision_bench.bench.kinds import kind_named, own_options
from vision_bench.bench.manifest import make_manifest, same_run
from vision_bench.bench.plan import Ladder, LoadPlan, Program, make_steps
from vision_bench.bench.rundir import RunFolder, check_new, is_run_folder
from vision_bench.bench.session import Session, Status
from vision_bench.bench.summary import summarise_folder, write_summary
from vision_bench.bench.sweep import Search, Sweep, check_sweep
from vision_bench.bench.workload import read_workload
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]
Calibrate = Callable[[], Awaitable[Json]]

DRAIN_SECONDS = 60.0
"""How long after a step's last arrival answers are waited for, unless the workload's own timeout is shorter."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A run as it was asked for.

    Attributes:
        sweep: search for the knee instead of the plan's rates, from the first of them on.
        own: options that belong to one kind, by name; None was not given.
        changes: values that stand in the place of the workload file's; None takes a key out.
        made_dir: see ``LoadOptions``.
        given_seed: the plan's seed where the user gave one.
    """

    workload: Path
    target: str | None
    out: Path
    plan: LoadPlan
    warm_up: int = 0
    slo: str | None = None
    api_key: str | None = None
    is_resumed: bool = False
    sweep: Sweep | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    made_dir: Path | None = None
    given_seed: int | None = None


def run_to_end(
    options: RunOptions, *, on_status: Callable[[Status], None] | None = None, calibrate: Calibrate | None = None
) -> Json:
    """As ``run``, in an event loop of its own."""
    return in_new_loop(run(options, on_status=on_status, calibrate=calibrate))


def in_new_loop(running: Coroutine[Any, Any, Json]) -> Json:
    """Run a coroutine in uvloop's event loop where there is one, which takes half of asyncio's time for a piece of a
    stream and so stamps what comes next sooner.
    """
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):  # it is not on every system
        from uvloop import new_event_loop  # noqa: PLC0415
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(running)


async def run(
    options: RunOptions, *, on_status: Callable[[Status], None] | None = None, calibrate: Calibrate | None = None
) -> Json:
    """Run everything and give the summary, which lies in the folder too. Cancelled, it leaves a readable folder.

    Args:
        calibrate: measures this client just before the first step of a new run; what it gives goes into the manifest.

    Raises:
        InvalidRequest: workload, options or folder are wrong; nothing was written.
        ConnectFailed, UnknownName: the target cannot be used; nothing was written.
        OperatorError: the folder can be written no more.
    """
    opening = prepare_run(options, on_status=on_status, calibrate=calibrate)
    try:
        async with opening as opened:
            await opened.start().run(opened.program, options.warm_up)
    finally:
        summary = write_summary(options.out) if is_run_folder(options.out) else {}
    return summary


class OpenRun(NamedTuple):
    """A run whose target answers. ``start`` makes its folder and gives what runs the steps that are not done."""

    start: Callable[[], Session]
    program: Program


def prepare_run(
    options: RunOptions,
    *,
    arms: str | None = None,
    on_status: Callable[[Status], None] | None = None,
    calibrate: Calibrate | None = None,
) -> AbstractAsyncContextManager[OpenRun]:
    """Read and check everything that a run needs, and give what opens its target and then its folder.

    Args:
        arms: names the pair of runs that this one is an arm of.

    Raises:
        InvalidRequest: workload, options or folder are wrong; nothing was written.
    """
    file = read_workload(options.workload).changed(options.changes)
    kind = kind_named(file.kind)
    own = own_options(file.kind, kind, options.own)
    if kind.has_long_requests:
        options = replace(options, plan=_lone_load(options.plan))
    if options.plan.cameras and not kind.takes_cameras:
        raise InvalidRequest(f"--cameras means nothing to a workload of kind {file.kind!r}; give --rate")
    if arms is not None and not kind.is_compared:
        # Said before the load, not after it: it is the comparison that would be missing.
        raise InvalidRequest(f"runs of kind {file.kind!r} are not compared; leave --against out")
    program, plan = _program(options)
    if not options.is_resumed:
        check_new(options.out)
    asked = LoadOptions(
        options.target,
        seed=str(options.plan.seed),
        given_seed=options.given_seed,
        out=options.out,
        slo=options.slo,
        api_key=options.api_key,
        own=own,
        made_dir=options.made_dir,
    )
    loaded = kind.load(file, asked)
    if loaded.needs_counts and isinstance(program, Ladder) and not program.has_counts:
        raise InvalidRequest("unique clips are made before a step; say how many it takes with --requests")
    if loaded.variants:
        program, plan = _varied(program, loaded.variants)
    load = asdict(options.plan) | {"arrivals": options.plan.arrivals.label, "trace": None, "warm_up": options.warm_up}
    manifest = make_manifest(file.kind, loaded, load=load, plan=plan)
    if options.is_resumed:
        manifest = same_run(options.out, manifest)
    elif arms is not None:
        manifest["arms"] = arms

    @asynccontextmanager
    async def opening() -> AsyncIterator[OpenRun]:
        with MonotonicClock() as clock, ExitStack() as open_files:
            async with loaded.open(clock, manifest["run_id"]) as link:
                manifest["server"] = await link.check() | manifest.get("server", {})
                if calibrate is not None and not options.is_resumed:
                    manifest["calibration"] = await calibrate()
                if link.probe is not None and not options.is_resumed:
                    manifest["probe"] = await link.probe()

                def start() -> Session:
                    reopened = RunFolder.reopen(options.out) if options.is_resumed else None
                    folder = open_files.enter_context(reopened or RunFolder.create(options.out, manifest))
                    return Session(
                        kind,
                        link,
                        folder,
                        clock,
                        drain_seconds=loaded.timeout_seconds
                        if kind.has_long_requests
                        else min(DRAIN_SECONDS, loaded.timeout_seconds),
                        first_ordinal=manifest.get("probe", {}).get("ordinals", 0),
                        on_status=on_status,
                    )

                yield OpenRun(start, program)

    return opening()


def _lone_load(plan: LoadPlan) -> LoadPlan:
    """The load of long requests where it was not asked for: one alone; one a lane where nothing says when to end."""
    is_open = bool(plan.rates or plan.cameras) or plan.arrivals.kind == "trace"
    lanes = plan.concurrency or ([] if is_open else [1])
    has_end = is_open or plan.duration_seconds is not None or plan.max_requests is not None
    return replace(plan, concurrency=lanes, max_requests=plan.max_requests if has_end else max(lanes))


def _program(options: RunOptions) -> tuple[Program, Any]:
    """The steps to run, and what the manifest keeps of them.

    Raises:
        InvalidRequest: options that contradict each other.
    """
    if options.sweep is None:
        ladder = Ladder(make_steps(options.plan))
        return ladder, ladder.facts()
    check_sweep(options.plan)
    first_rate = options.plan.rates[0] if options.plan.rates else options.sweep.first_rate
    search = Search(
        replace(options.sweep, first_rate=first_rate),
        options.plan,
        has_slo=options.slo is not None,
        steps=lambda: summarise_folder(options.out)["steps"],
    )
    return search, search.facts()


def _varied(program: Program, variants: Sequence[Json]) -> tuple[Program, Any]:
    """Each step once under each variant.

    Raises:
        InvalidRequest: a search, whose next step follows from the one before.
    """
    if not isinstance(program, Ladder):
        raise InvalidRequest(
            f"--sweep searches for the knee of one thing, and this workload has {len(variants)} in turn "
            f"({', '.join(variants[0])}); have it name one"
        )
    ladder = program.under_each(variants)
    return ladder, ladder.facts()


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

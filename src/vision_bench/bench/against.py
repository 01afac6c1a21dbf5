"""Two targets under one load, measured in turn, step by step: what drifts meanwhile drifts for both."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from vision_bench.bench.plan import Program, Step
from vision_bench.bench.run import Calibrate, RunOptions, in_new_loop, prepare_run
from vision_bench.bench.rundir import is_run_folder, read_manifest
from vision_bench.bench.session import Session, Status
from vision_bench.bench.summary import write_summary
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]

ARMS = ("a", "b")


def arm_folders(out: Path) -> tuple[Path, Path]:
    """The run folders of a pair: ``a`` is the target, ``b`` what it is held against."""
    first, second = (out / name for name in ARMS)
    return first, second


def run_pair_to_end(
    options: RunOptions,
    against: str,
    *,
    on_status: Callable[[Status], None] | None = None,
    calibrate: Calibrate | None = None,
) -> tuple[Json, Json]:
    """As ``run_pair``, in an event loop of its own."""

    async def both() -> Json:
        return dict(zip(ARMS, await run_pair(options, against, on_status=on_status, calibrate=calibrate), strict=True))

    found = in_new_loop(both())
    return found["a"], found["b"]


async def run_pair(
    options: RunOptions,
    against: str,
    *,
    on_status: Callable[[Status], None] | None = None,
    calibrate: Calibrate | None = None,
) -> tuple[Json, Json]:
    """Run every step on the one target and then on the other, and give both summaries.

    The order changes from step to step and from round to round, so that neither arm is always the first. Requests,
    schedules and bodies are the same; each arm has a whole run folder of its own.

    Raises:
        InvalidRequest: as ``run``; or a sweep was asked for, whose arms would go different ways.
        ConnectFailed, UnknownName: a target cannot be used; nothing was written.
    """
    if options.sweep is not None:
        raise InvalidRequest("--against compares steps that both targets get; say them with --rate or --concurrency")
    if not options.is_resumed and options.out.is_dir() and any(options.out.iterdir()):
        raise InvalidRequest(f"{options.out} is not empty; go on with --resume, or give another --out")
    folders = arm_folders(options.out)
    arms = secrets.token_hex(4)
    targets = (options.target, against)
    asked = [
        # Of two arms that were cut off, the second may not have begun.
        replace(options, target=target, out=folder, is_resumed=options.is_resumed and is_run_folder(folder))
        for target, folder in zip(targets, folders, strict=True)
    ]
    if asked[0].is_resumed:
        arms = _arms_of(folders[0])
    openings = [prepare_run(each, arms=arms, on_status=on_status, calibrate=calibrate) for each in asked]
    try:
        async with AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(opening) for opening in openings]
            sessions = [each.start() for each in opened]  # once both targets answer
            await _in_turn(sessions, opened[0].program, options.warm_up)
    finally:
        summaries = [write_summary(folder) if is_run_folder(folder) else {} for folder in folders]
    return summaries[0], summaries[1]


def _arms_of(folder: Path) -> str:
    name = read_manifest(folder).get("arms")
    if name is None:
        raise InvalidRequest(f"{folder} is no arm of a pair; give another --out")
    return str(name)


async def _in_turn(sessions: list[Session], program: Program, warm_up: int) -> None:
    places: Counter[int] = Counter()
    for index in range(program.size):
        step = program.step(index)
        if step is None:
            return
        order = order_of(places[step.round], step.round)
        places[step.round] += 1
        for arm in order:
            await sessions[arm].run(UpTo(program, index), warm_up)


def order_of(place: int, round_number: int) -> tuple[int, int]:
    """Which arm is first: another one than in the step before it, and than in the same step a round before.

    Args:
        place: of the step in its round, from 0.
    """
    return (0, 1) if (place + round_number) % 2 == 0 else (1, 0)


class UpTo:
    """A program up to one of its steps, that one included."""

    def __init__(self, program: Program, last: int) -> None:
        self._program = program
        self._last = last
        self.size = program.size

    def step(self, index: int) -> Step | None:
        return self._program.step(index) if index <= self._last else None

"""The only I/O of the kind: hold workers of each arm, prove their output equal, give a record's clip to one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from vision_bench.bench.clock import Clock
from vision_bench.bench.preprocess.interpreters import worker_command, worker_environ
from vision_bench.bench.preprocess.pool import Pool, WorkerDied
from vision_bench.bench.preprocess.record import PreprocessRecord
from vision_bench.bench.preprocess.worker import Job
from vision_bench.bench.preprocess.workload import Prepared
from vision_bench.bench.record import OK
from vision_bench.preprocess.equivalence import MEANING, Unequal

Json = dict[str, Any]

TIMED_OUT = "timeout"
WORKER_DIED = "worker_died"
REFERENCE = "preprocess.reference (NumPy), the package's own oracle"


class PreprocessTarget:
    """Workers for every arm of a workload. Use it as an async context manager.

    Args:
        python: the interpreter of every worker.
        environ: what workers inherit, less what would mislead another Python.
    """

    def __init__(self, prepared: Prepared, python: Path, *, clock: Clock, environ: Mapping[str, str]) -> None:
        self._prepared = prepared
        self._python = python
        self._clock = clock
        self._environ = environ
        self._pools: dict[str, Pool] = {}
        self._pool: Pool
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Start the workers, one arm after the other.

        Raises:
            OperatorError: a worker cannot work.
        """
        workload = self._prepared.workload
        variables = worker_environ(self._environ, workload.threads)
        try:
            for arm in workload.arms:
                pool = Pool(worker_command(self._python), variables, self._job(arm), max(workload.workers))
                self._pools[arm] = await self._stack.enter_async_context(pool)
            await self.use(self._prepared.variants[0])
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _job(self, arm: str) -> Job:
        workload = self._prepared.workload
        return Job(
            arm=arm,
            spec=asdict(self._prepared.spec),
            frames=workload.frames,
            width=workload.width,
            height=workload.height,
            clips=workload.clips,
            threads=workload.threads,
            with_oracle=workload.arms == ("ours",),
        )

    def check(self) -> Json:
        """Every worker's output against the others', or against the oracle where ours is alone.

        Raises:
            Unequal: some byte differs. No time is worth anything then.
        """
        arms = {arm: pool.hellos for arm, pool in self._pools.items()}
        hellos = [hello for found in arms.values() for hello in found]
        outputs = {tuple(digests) for hello in hellos for digests in (hello["digests"], hello.get("oracle")) if digests}
        if len(outputs) > 1:
            raise Unequal(
                f"the output of {' and '.join(arms)} is not equal, so their times are not measured; "
                "`vision-bench equivalence` shows where they differ"
            )
        against = "stock" if "stock" in arms and "ours" in arms else REFERENCE if "ours" in arms else None
        level = None if against is None else {"level": "E0", "meaning": MEANING["E0"], "against": against}
        return {"equivalence": level, "arms": {arm: found[0]["versions"] for arm, found in arms.items()}}

    async def use(self, variant: Mapping[str, Any]) -> None:
        """Have the next step run under a variant: an arm, and how many of its workers."""
        self._pool = self._pools[variant["arm"]]
        await self._pool.take_part(variant["workers"])

    async def send(self, record: PreprocessRecord) -> None:
        """Wait for a worker, have it work, and note when."""
        record.clip = record.ordinal % self._prepared.workload.clips
        try:
            async with asyncio.timeout(self._prepared.workload.timeout_seconds):
                worker = await self._pool.next_free()
                record.start_ns, record.worker = self._clock.now_ns(), worker.number
                record.work_ns = await self._pool.work(worker, record.clip)
                record.end_ns = self._clock.now_ns()
        except TimeoutError:
            where = "in the queue" if record.start_ns is None else "in a worker"
            record.end(TIMED_OUT, f"{self._prepared.workload.timeout_seconds:g} s were over {where}")
        except WorkerDied as problem:
            record.end(WORKER_DIED, str(problem))
        else:
            record.end(OK)

"""The queue and its workers, with processes that are told what to answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import pytest
from tests.unit.bench.preprocess.made import small_file

from vision_bench.bench.preprocess.pool import Pool, WorkerDied
from vision_bench.bench.preprocess.worker import Job
from vision_bench.bench.preprocess.workload import prepare
from vision_bench.errors import OperatorError

WORKER = """
import json, sys, time
lines = iter(sys.stdin)
next(lines)
print(json.dumps({"digests": []}), flush=True)
for line in lines:
    clip = int(line)
    if clip == 9:
        print("out of memory", file=sys.stderr, flush=True)
        sys.exit(7)
    time.sleep(clip / 100)
    print(json.dumps({"work_ns": clip * 10_000_000}), flush=True)
"""
"""Clip N takes N x 10 ms; clip 9 ends it."""


@asynccontextmanager
async def pool_of(count: int, code: str = WORKER, environ: Mapping[str, str] = os.environ) -> AsyncIterator[Pool]:
    spec = asdict(prepare(small_file()).spec)
    job = Job(arm="ours", spec=spec, frames=3, width=64, height=40, clips=10, threads=1)
    async with asyncio.timeout(60), Pool([sys.executable, "-c", code], environ, job, count) as pool:
        yield pool


async def one(pool: Pool, clip: int, log: list[Any], name: object) -> None:
    worker = await pool.next_free()
    log.append((name, worker.number))
    await pool.work(worker, clip)


async def test_one_worker_takes_requests_in_the_order_of_asking() -> None:
    """However long each takes."""
    async with pool_of(1) as pool:
        await pool.take_part(1)
        log: list[Any] = []
        await asyncio.gather(*(one(pool, clip, log, name) for name, clip in enumerate([5, 1, 3, 0])))
        assert log == [(0, 0), (1, 0), (2, 0), (3, 0)]


async def test_only_those_who_take_part_get_work() -> None:
    """A step with one worker of three leaves two idle; the next step may have all."""
    async with pool_of(3) as pool:
        for count in (1, 3):
            await pool.take_part(count)
            log: list[Any] = []
            await asyncio.gather(*(one(pool, 2, log, name) for name in range(6)))
            assert {worker for _, worker in log} == set(range(count))


async def test_a_request_that_gives_up_leaves_its_worker_in_step() -> None:
    """Its answer is awaited all the same, so that the next request gets its own; a new step waits for it."""
    async with pool_of(1) as pool:
        await pool.take_part(1)
        worker = await pool.next_free()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.work(worker, 8), 0.01)
        await pool.take_part(1)
        worker = await pool.next_free()
        assert await pool.work(worker, 2) == 20_000_000


async def test_a_worker_that_dies_says_why_and_gets_nothing_more() -> None:
    """Its request fails with its last words; the other worker goes on; with none left all who wait are told."""
    async with pool_of(2) as pool:
        await pool.take_part(2)
        with pytest.raises(WorkerDied, match="status 7: out of memory"):
            await pool.work(await pool.next_free(), 9)
        log: list[Any] = []
        await asyncio.gather(*(one(pool, 1, log, name) for name in range(3)))
        assert {worker for _, worker in log} == {1}
        waiting = [asyncio.create_task(one(pool, 9, [], name)) for name in range(3)]
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(end) for end in ends] == [WorkerDied] * 3
        await pool.take_part(2)
        with pytest.raises(WorkerDied, match="no worker is left"):
            await pool.next_free()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('torch is broken here')", "ours preprocessor cannot run: .*torch is broken here"),
        ("""print('{"error": "MissingTool: no transformers"}')""", "MissingTool: no transformers"),
    ],
)
async def test_a_worker_that_cannot_start_ends_the_run_with_its_reason(code: str, message: str) -> None:
    """Whether it crashes or tells."""
    with pytest.raises(OperatorError, match=message):
        async with pool_of(2, code):
            pass


async def test_a_python_that_is_not_there_is_named() -> None:
    """The system's own words."""
    job = Job(arm="stock", spec={}, frames=3, width=64, height=40, clips=1, threads=1)
    with pytest.raises(OperatorError, match="/no/such/python"):
        async with Pool(["/no/such/python"], {}, job, 1):
            pass

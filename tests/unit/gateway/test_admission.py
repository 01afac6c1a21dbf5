"""Permits: what is counted, what is timed, and what a full house says."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from vision_bench.errors import AcquireTimeout
from vision_bench.gateway.admission import Admission
from vision_bench.gateway.timings import Timings


async def test_a_wait_is_timed_even_when_it_fails() -> None:
    """queue_ms is the clock's difference, with a permit and without."""
    ticks = count(0, 2_000_000)
    admission = Admission(1, acquire_timeout_seconds=0.001, clock=lambda: next(ticks))
    first, second = Timings(), Timings()
    async with admission.permit(first):
        assert (admission.in_use, admission.waiting) == (1, 0)
        with pytest.raises(AcquireTimeout, match=r"0\.001 s \(1 in use\).*VLLM_CONCURRENCY"):
            async with admission.permit(second):
                raise AssertionError("there was no permit")
    assert (first.queue_ms, second.queue_ms) == (2.0, 2.0)
    assert first.upstream_ms is None
    assert (admission.in_use, admission.waiting) == (0, 0)


async def test_a_timeout_of_the_block_is_not_mistaken_for_ours() -> None:
    """A TimeoutError that the holder raises passes through, and the permit comes back."""
    admission = Admission(1, acquire_timeout_seconds=1)
    with pytest.raises(TimeoutError, match="mine"):
        async with admission.permit(Timings()):
            raise TimeoutError("mine")
    assert admission.in_use == 0


async def test_a_cancelled_wait_leaves_the_queue() -> None:
    """Whoever is cancelled in the queue is counted out, and the next in line gets the permit."""
    admission = Admission(1, acquire_timeout_seconds=10)
    order: list[str] = []

    async def hold(name: str) -> None:
        async with admission.permit(Timings()):
            order.append(name)
            await asyncio.sleep(0)

    async with admission.permit(Timings()):
        tasks = [asyncio.create_task(hold(name)) for name in ("a", "b")]
        await asyncio.sleep(0)
        assert admission.waiting == 2
        tasks[0].cancel()
        await asyncio.sleep(0)
        assert admission.waiting == 1
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["b"]


async def test_who_waits_moves_when_the_last_server_is_set_aside() -> None:
    """With one server set aside a call waits for the other; with both, it gets the one that has a permit free, which
    failed longest ago. One that is back is preferred at once."""
    admission = Admission(1, upstreams=2, acquire_timeout_seconds=10)
    first, second = admission.lanes
    admission.set_aside(first)
    assert await admission.acquire(Timings()) is second
    waiting = asyncio.create_task(admission.acquire(Timings()))
    await asyncio.sleep(0)
    assert (first.in_use, admission.waiting) == (0, 1)
    admission.set_aside(second)
    assert await waiting is first
    admission.release(first)
    admission.release(second)
    assert await admission.acquire(Timings()) is first
    admission.release(first)
    admission.bring_back(second)
    assert await admission.acquire(Timings()) is second


async def test_who_may_take_one_server_alone_waits_for_it_and_holds_nobody_up() -> None:
    """A call for a full server is passed by those who may take any, keeps its place, and gets that server's permit."""
    admission = Admission(1, upstreams=2, acquire_timeout_seconds=10)
    order: list[tuple[str, int]] = []
    go = asyncio.Event()

    async def hold(name: str, among: frozenset[int] | None) -> None:
        async with admission.permit(Timings(among=None if among is None else lambda: among)) as lane:
            order.append((name, lane.index))
            await go.wait()

    held = await admission.acquire(Timings(among=lambda: frozenset({0})))
    assert held.index == 0
    tasks = [asyncio.create_task(hold(name, frozenset({0}))) for name in ("first", "second")]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(hold("any", None)))
    await asyncio.sleep(0)
    assert (order, admission.waiting) == ([("any", 1)], 2)
    admission.release(held)
    await asyncio.sleep(0)
    assert order == [("any", 1), ("first", 0)]
    go.set()
    await asyncio.gather(*tasks)
    assert order == [("any", 1), ("first", 0), ("second", 0)]
    assert (admission.in_use, admission.waiting) == (0, 0)


async def test_the_moment_of_the_permit_is_noted() -> None:
    """permitted_ns is the clock when the wait was over."""
    ticks = count(5, 10)
    admission = Admission(1, acquire_timeout_seconds=1, clock=lambda: next(ticks))
    timings = Timings()
    async with admission.permit(timings):
        assert timings.permitted_ns == 15

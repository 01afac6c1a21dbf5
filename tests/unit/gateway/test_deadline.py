"""The limit on one call: what it raises, and what it leaves alone."""

from __future__ import annotations

import asyncio

import pytest

from vision_bench.gateway.deadline import Deadline


async def test_a_block_that_takes_too_long_is_cancelled_and_told_as_a_timeout() -> None:
    """The task itself is not left cancelled."""
    with pytest.raises(TimeoutError), Deadline(0) as limit:
        await asyncio.Event().wait()
    assert limit.is_over
    await asyncio.sleep(0)


async def test_a_block_in_time_is_left_alone() -> None:
    """Its timer is gone with it."""
    with Deadline(0.001) as limit:
        pass
    await asyncio.sleep(0.005)
    assert not limit.is_over


async def test_the_blocks_own_error_comes_through() -> None:
    """Also a TimeoutError of its own."""
    for problem in (ValueError("mine"), TimeoutError("mine")):
        with pytest.raises(type(problem), match="mine"), Deadline(10) as limit:
            raise problem
        assert not limit.is_over


async def test_somebody_elses_cancellation_is_not_a_timeout() -> None:
    """A caller that leaves, or a server that stops, in the block and in the moment of the limit."""
    began = asyncio.Event()

    async def block(seconds: float) -> None:
        with Deadline(seconds):
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(block(10))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    began.clear()
    both = asyncio.create_task(block(0))
    await began.wait()
    both.cancel()
    with pytest.raises(asyncio.CancelledError):
        await both

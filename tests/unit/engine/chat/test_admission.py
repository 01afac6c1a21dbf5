"""Slots."""

from __future__ import annotations

import asyncio

import pytest

from vision_bench.engine.chat.admission import Slots


async def hold(slots: Slots, release: asyncio.Event) -> None:
    async with slots.take():
        await release.wait()


async def test_running_and_waiting_are_told_apart() -> None:
    """Two slots, three takers."""
    slots, release = Slots(2, max_waiting=None), asyncio.Event()
    tasks = [asyncio.create_task(hold(slots, release)) for _ in range(3)]
    await asyncio.sleep(0)
    assert (slots.running, slots.waiting) == (2, 1)
    release.set()
    await asyncio.gather(*tasks)
    assert (slots.running, slots.waiting) == (0, 0)


async def test_queue_is_full_only_when_every_slot_is_taken() -> None:
    """max_waiting 0 still lets requests run."""
    slots, release = Slots(1, max_waiting=0), asyncio.Event()
    assert not slots.is_full
    task = asyncio.create_task(hold(slots, release))
    await asyncio.sleep(0)
    assert slots.is_full
    release.set()
    await task


@pytest.mark.parametrize("victim", [0, 1, 2])
async def test_cancelling_loses_no_slot(victim: int) -> None:
    """Whichever of three is cancelled, running or waiting, the rest run and the slot is free after."""
    slots, release = Slots(1, max_waiting=None), asyncio.Event()
    tasks = [asyncio.create_task(hold(slots, release)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[victim].cancel()
    release.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(1), slots.take():
        assert slots.running == 1

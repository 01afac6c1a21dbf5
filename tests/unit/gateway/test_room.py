"""Room for bodies, and turns to read them."""

from __future__ import annotations

import asyncio

import pytest

from vision_bench.errors import AcquireTimeout
from vision_bench.gateway.admission import Admission
from vision_bench.gateway.room import Buffer, Pace
from vision_bench.gateway.timings import Timings


async def hold(buffer: Buffer, size_bytes: int, release: asyncio.Event, order: list[int]) -> None:
    """Hold room until released, and say when it was had."""
    async with buffer.room(size_bytes, Timings()):
        order.append(size_bytes)
        await release.wait()


async def test_room_goes_in_the_order_of_asking() -> None:
    """A small body behind a large one that does not fit yet waits too: it would starve the large one for ever."""
    buffer = Buffer(10, acquire_timeout_seconds=10)
    order: list[int] = []
    releases = [asyncio.Event() for _ in range(3)]
    tasks = [
        asyncio.create_task(hold(buffer, size, release, order))
        for size, release in zip((6, 9, 1), releases, strict=True)
    ]
    await asyncio.sleep(0)
    assert (order, buffer.held_bytes, buffer.waiting) == ([6], 6, 2)
    releases[0].set()
    await asyncio.sleep(0.01)
    assert (order, buffer.held_bytes, buffer.waiting) == ([6, 9, 1], 10, 0)
    for release in releases:
        release.set()
    await asyncio.gather(*tasks)
    assert buffer.held_bytes == 0


async def test_room_that_is_given_back_early_lets_the_next_in() -> None:
    """A body of unknown length takes the most there may be, and gives back what it did not need."""
    buffer = Buffer(10, acquire_timeout_seconds=10)
    order: list[int] = []
    release = asyncio.Event()
    async with buffer.room(10, Timings()) as room:
        waiting = asyncio.create_task(hold(buffer, 7, release, order))
        await asyncio.sleep(0)
        room.shrink(4)
        assert (buffer.held_bytes, order) == (4, [])
        room.shrink(3)
        await asyncio.sleep(0)
        assert (buffer.held_bytes, order) == (10, [7])
        room.shrink(5)
        assert buffer.held_bytes == 10, "room never grows"
    release.set()
    await waiting
    assert buffer.held_bytes == 0


async def test_a_wait_for_room_ends_in_time_and_counts_as_queue() -> None:
    """Like a permit: acquire_timeout, the time in queue_ms, nothing held; and who waits behind goes on."""
    buffer = Buffer(10, acquire_timeout_seconds=0.01)
    timings = Timings()
    order: list[int] = []
    release = asyncio.Event()
    async with buffer.room(6, Timings()):
        with pytest.raises(AcquireTimeout, match=r"no room for 5 bytes .* GATEWAY_BUFFER_BYTES"):
            async with buffer.room(5, timings):
                raise AssertionError("there was no room")
        assert timings.queue_ms is not None
        assert timings.queue_ms >= 10
        holder = asyncio.create_task(hold(buffer, 4, release, order))
        await asyncio.sleep(0)
        assert order == [4]
    release.set()
    await holder
    assert (buffer.held_bytes, buffer.waiting) == (0, 0)


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
async def test_a_cancelled_wait_for_room_takes_nothing(turns: int) -> None:
    """Cancelled before, in and after the moment in which room comes free: afterwards all of it is there."""
    buffer = Buffer(10, acquire_timeout_seconds=10)
    order: list[int] = []
    release = asyncio.Event()
    release.set()
    async with buffer.room(10, Timings()):
        first = asyncio.create_task(hold(buffer, 10, asyncio.Event(), order))
        second = asyncio.create_task(hold(buffer, 10, release, order))
        await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait((first, second), timeout=5)
    assert order[-1:] == [10]
    assert second.done()
    assert (buffer.held_bytes, buffer.waiting) == (0, 0)


async def test_the_wait_for_room_shortens_the_patience_for_a_permit() -> None:
    """VLLM_ACQUIRE_TIMEOUT_SECONDS is one limit for both waits, and queue_ms their sum."""
    admission = Admission(1, acquire_timeout_seconds=10)
    timings = Timings(queue_ms=9_990.0)
    async with admission.permit(Timings()):
        with pytest.raises(AcquireTimeout):
            async with asyncio.timeout(5), admission.permit(timings):
                raise AssertionError("there was no permit")
    assert timings.queue_ms is not None
    assert timings.queue_ms >= 9_999


async def test_a_crowd_reads_a_few_pieces_a_turn() -> None:
    """A hundred uploads at once: never more than eight pieces in one turn of the loop, everybody gets on, in order, and
    one that was cancelled takes nobody's turn."""
    pace = Pace()
    turns: list[list[int]] = [[]]

    async def upload(number: int) -> None:
        await pace.turn()
        turns[-1].append(number)

    tasks = [asyncio.create_task(upload(number)) for number in range(100)]
    await asyncio.sleep(0)
    tasks[50].cancel()
    while not all(task.done() for task in tasks):
        turns.append([])
        await asyncio.sleep(0)
    assert [number for turn in turns for number in turn] == [number for number in range(100) if number != 50]
    assert max(len(turn) for turn in turns) == Pace.PIECES_A_TURN
    assert not pace._queue


async def test_room_is_freed_in_parts_and_never_twice() -> None:
    """Items that finish, one by one, and one that reports after everything was given back."""
    buffer = Buffer(100, acquire_timeout_seconds=1)
    async with buffer.room(90, Timings()) as room:
        room.free(30)
        assert buffer.held_bytes == 60
        room.free(50)
    assert buffer.held_bytes == 0
    room.free(10)
    assert buffer.held_bytes == 0

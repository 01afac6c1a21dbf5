"""Permits: what is counted, what is timed, and what a full house says."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from vision_bench.errors import AcquireTimeout
from vision_bench.gateway.admission import Admission, Buffer, Pace, Timings


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

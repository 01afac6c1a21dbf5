"""The bounded history of one stream."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from tests.jumping_clock import run

from vision_bench.live.clocks import Stamp
from vision_bench.live.ring import FRAME_OVERHEAD_BYTES, Frame, Ring

MS = 1_000_000
SECOND = 1_000 * MS
START_NS = 77 * SECOND
KB = 1_000


def a_ring(*, limit_bytes: int = 10 * KB * KB, retention_seconds: int = 600) -> Ring:
    return Ring(limit_bytes=limit_bytes, retention_ns=retention_seconds * SECOND)


def put(ring: Ring, at_ms: float, *, size_bytes: int = 10, delay_ms: float = 0) -> Frame | None:
    """A frame seen ``at_ms`` after the start, received ``delay_ms`` later."""
    at_ns = START_NS + round(at_ms * MS)
    return ring.append(b"j" * size_bytes, width=4, height=3, at_ns=at_ns, received_ns=at_ns + round(delay_ms * MS))


def filled(count: int, *, every_ms: float = 100, **options: int) -> Ring:
    ring = a_ring(**options)
    for number in range(count):
        put(ring, number * every_ms)
    return ring


def test_the_stream_s_clock_is_zero_at_the_first_frame() -> None:
    """Indices count from 0, times from the first frame, and a time in whole ms is rounded down."""
    ring = a_ring()
    first, second = put(ring, 0), put(ring, 33.4)
    assert first is not None and second is not None
    assert (first.index, first.stream_ns, second.index, second.stream_ms) == (0, 0, 1, 33)
    assert ring.origin_ns == START_NS
    assert ring.newest is second and list(ring) == [first, second]


def test_an_empty_ring_has_no_frame_and_no_number_but_counts() -> None:
    """None where there is no frame; the counts are zero because they are counted."""
    state = a_ring().state(START_NS)
    assert (state.last_index, state.last_ms, state.first_index, state.first_ms, state.recent_fps) == (None,) * 5
    assert (state.retained_count, state.evicted_count, state.held_bytes) == (0, 0, 0)
    assert a_ring().newest is None


def test_indices_are_for_life() -> None:
    """What is dropped for room is the oldest; the numbers of the others stay."""
    ring = filled(10, limit_bytes=4 * (FRAME_OVERHEAD_BYTES + 10) + 9)
    assert (ring.first_index, ring.next_index, len(ring)) == (6, 10, 4)
    assert [frame.index for frame in ring] == [6, 7, 8, 9]
    assert ring.before_ns == 500 * MS
    state = ring.state(START_NS + SECOND)
    assert (state.first_index, state.first_ms, state.retained_count, state.evicted_count) == (6, 600, 4, 6)
    for index in (5, 10, -1):
        with pytest.raises(IndexError, match="not among 6 to 9"):
            ring[index]


def test_the_retention_holds_while_no_frame_comes() -> None:
    """A camera that stopped loses its frames when they are 600 s old, the newest too; its last index stays known."""
    ring = filled(3, every_ms=1000)
    ring.evict(START_NS + 601 * SECOND)
    assert [frame.index for frame in ring] == [2]
    state = ring.state(START_NS + 602 * SECOND)
    assert (state.retained_count, state.evicted_count, state.last_index, state.last_ms) == (0, 3, 2, 2000)
    assert (state.first_index, ring.newest, ring.held_bytes) == (None, None, 0)
    after = put(ring, 700_000)
    assert after is not None and after.index == 3 and ring.before_ns == 2 * SECOND


def test_a_frame_that_is_no_later_is_refused_and_counted() -> None:
    """The stream's clock never stands still or turns back; the number of refusals is told."""
    ring = filled(2)
    assert put(ring, 100) is None and put(ring, 50) is None
    assert ring.state(START_NS).refused == {"not_after_the_last": 2}
    assert ring.next_index == 2


def test_a_frame_larger_than_the_ring_is_refused_and_costs_nobody_its_place() -> None:
    """One huge picture does not empty the history."""
    ring = filled(3, limit_bytes=20 * KB)
    assert put(ring, 1000, size_bytes=20 * KB) is None
    assert len(ring) == 3 and ring.refused["larger_than_the_ring"] == 1
    assert put(ring, 1000, size_bytes=20 * KB - FRAME_OVERHEAD_BYTES) is not None
    assert [frame.index for frame in ring] == [3] and ring.held_bytes == 20 * KB


def test_a_refused_first_frame_does_not_set_the_clock() -> None:
    """The stream begins at the first frame that is held."""
    ring = a_ring(limit_bytes=2 * KB)
    put(ring, 0, size_bytes=5 * KB)
    frame = put(ring, 40)
    assert frame is not None and frame.stream_ns == 0 and frame.index == 0


def test_a_time_finds_the_first_frame_from_it_on() -> None:
    """The time that a frame shows finds that frame; after the newest there is none; evicted ones are never found."""
    ring = filled(10, every_ms=33.4, limit_bytes=5 * (FRAME_OVERHEAD_BYTES + 10))
    times = [frame.stream_ms for frame in ring]
    assert [ring.index_at(ms) for ms in times] == [5, 6, 7, 8, 9]
    assert ring.index_at(-1) == ring.index_at(0) == 5
    assert ring.index_at(times[1] + 1) == 7
    assert ring.index_at(times[-1] + 1) == ring.next_index == 10
    assert a_ring().index_at(0) == 0


def test_the_rate_counts_the_last_five_seconds() -> None:
    """10 frames a second are 10.0; half a pause halves it; a pause of five seconds is 0.0, not the rate before it."""
    ring = filled(101)
    assert ring.recent_fps(START_NS + 10 * SECOND) == pytest.approx(10.0)
    assert ring.recent_fps(START_NS + 12_500 * MS) == pytest.approx(5.0)
    assert ring.recent_fps(START_NS + 15 * SECOND) == 0.0


def test_the_rate_of_a_young_stream_counts_from_its_first_frame() -> None:
    """Eleven frames in one second are ten intervals; one frame alone is no rate until five seconds have passed."""
    assert filled(11).recent_fps(START_NS + SECOND) == pytest.approx(10.0)
    assert filled(1).recent_fps(START_NS) is None
    assert filled(1).recent_fps(START_NS + SECOND) is None
    assert filled(1).recent_fps(START_NS + 6 * SECOND) == 0.0
    assert filled(2, every_ms=0.0001).recent_fps(START_NS) is None


def test_a_fast_stream_is_not_counted_short() -> None:
    """1000 frames a second are told although fewer than five seconds of arrivals are remembered."""
    assert filled(3000, every_ms=1).recent_fps(START_NS + 2999 * MS) == pytest.approx(1000.0)


def test_an_ended_ring_lets_go_of_everything() -> None:
    """No frame stays, none is taken, and the counts say how many there were."""
    ring = filled(3)
    ring.end()
    assert put(ring, 900) is None
    state = ring.state(START_NS)
    assert (state.retained_count, state.evicted_count, state.held_bytes, state.refused) == (0, 3, 0, {"ended": 1})


def test_a_frame_costs_no_more_than_is_counted() -> None:
    """What a thousand tiny frames with all their stamps take of memory stays under what the ring counts for them."""
    ring = a_ring()
    names = ("captured", "first_packet", "last_packet", "released", "decoded", "stored")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1000):
            at_ns = START_NS + number * 33 * MS
            stamps = {name: Stamp("gateway", at_ns + place) for place, name in enumerate(names)}
            ring.append(bytes(10), width=4, height=3, at_ns=at_ns, received_ns=at_ns + 1, stamps=stamps)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(ring) == 1000
    assert after - before <= ring.held_bytes


def test_who_waits_is_woken_by_the_next_frame() -> None:
    """Nothing is asked between frames, and what is found is handed back at once."""

    async def main() -> None:
        ring = filled(2)
        asked: list[int] = []

        def look() -> Frame | None:
            asked.append(ring.next_index)
            return ring.newest if ring.next_index > 3 else None

        waiting = asyncio.create_task(ring.wait_for(look, timeout_seconds=5))
        for number in (2, 3, 4):
            await asyncio.sleep(1)
            put(ring, number * 100)
        found = await waiting
        assert found is not None and found.index == 3
        assert asked == [2, 3, 4]

    run(main())


def test_the_wait_is_bounded_and_leaves_nothing_behind() -> None:
    """None when the time is over or the stream ends, at that moment; a time of 0 only looks."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        ring = a_ring()
        began = loop.time()
        assert await ring.wait_for(lambda: None, timeout_seconds=0) is None
        assert loop.time() == began
        assert await ring.wait_for(lambda: None, timeout_seconds=7) is None
        assert loop.time() - began == pytest.approx(7)
        loop.call_later(2, ring.end)
        assert await ring.wait_for(lambda: None, timeout_seconds=7) is None
        assert loop.time() - began == pytest.approx(9)
        assert not ring._waiting

    run(main())


def test_a_reader_that_breaks_or_leaves_costs_the_writer_nothing() -> None:
    """An error in a look, and a caller that goes away, are the reader's; frames keep coming and others are woken."""

    async def main() -> None:
        ring = a_ring()

        def broken() -> None:
            if ring.next_index:
                raise RuntimeError("a bug in a look")

        failing = asyncio.create_task(ring.wait_for(broken, timeout_seconds=60))
        leaving = asyncio.create_task(ring.wait_for(lambda: None, timeout_seconds=60))
        staying = asyncio.create_task(ring.wait_for(lambda: ring.newest, timeout_seconds=60))
        await asyncio.sleep(1)
        leaving.cancel()
        assert put(ring, 0) is not None
        assert await staying is ring.newest
        with pytest.raises(RuntimeError, match="a bug in a look"):
            await failing
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert put(ring, 1) is not None and not ring._waiting

    run(main())


def test_a_frame_that_is_being_read_outlives_its_place() -> None:
    """What a slow question holds stays whole while the ring turns over beneath it."""
    ring = filled(3, limit_bytes=3 * (FRAME_OVERHEAD_BYTES + 10))
    held = list(ring)
    for number in range(3, 500):
        put(ring, number * 100)
    assert [frame.index for frame in held] == [0, 1, 2] and held[0].jpeg == b"j" * 10
    assert len(ring) == 3 and ring.held_bytes <= ring.limit_bytes


def test_the_places_of_frames_that_went_are_given_back() -> None:
    """A ring that turns over for hours stays as long as what it holds, within a constant."""
    ring = filled(5_000, limit_bytes=3 * (FRAME_OVERHEAD_BYTES + 10))
    assert len(ring) == 3 and len(ring._frames) < 100


def test_a_frame_that_comes_sends_old_ones_away() -> None:
    """The retention holds without anybody asking."""
    ring = filled(3)
    put(ring, 900_000)
    assert [frame.index for frame in ring] == [3]

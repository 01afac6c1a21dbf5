"""Which frames a reference names."""

from __future__ import annotations

import asyncio

import pytest
from tests.jumping_clock import run
from tests.unit.live.rings import put, ring_of

from vision_bench.live.failures import StreamFailure
from vision_bench.live.references import MAX_FPS, parse_reference
from vision_bench.live.ring import Ring
from vision_bench.live.selection import select, select_in_time


def ten() -> Ring:
    """Frames 0 to 19 every 100 ms; 10 to 19 are held, 1000 to 1900 ms."""
    return ring_of((number * 100 for number in range(20)), held=10)


def chosen(ring: Ring, query: str) -> list[int]:
    """Indices of the frames that the query names, as a picture or as a segment that keeps every frame."""
    is_segment = "start_" in query or "end_" in query
    if is_segment and "max_fps" not in query:
        query += f"&max_fps={MAX_FPS}"
    reference = parse_reference(f"ovs://streams/a?{query}", "video_url" if is_segment else "image_url")
    return [frame.index for frame in select(ring, reference)]


FRAMES = [
    ("frame_index=-1", 19),
    ("frame_index=-10", 10),
    ("frame_index=19", 19),
    ("frame_index=10", 10),
    ("timestamp_ms=1500", 15),
    ("timestamp_ms=1540", 15),
    ("timestamp_ms=1560", 16),
    ("timestamp_ms=1550", 16),  # equally near: the newer
    ("timestamp_ms=1999", 19),
    ("timestamp_ms=2000", 19),
    ("timestamp_ms=900", 10),
    ("timestamp_ms=2500&tolerance_ms=600", 19),
    ("timestamp_ms=1501&direction=forward", 16),
    ("timestamp_ms=1500&direction=forward", 15),
    ("timestamp_ms=1599&direction=backward", 15),
    ("timestamp_ms=1600&direction=backward", 16),
    ("offset_ms=-400", 15),
    ("offset_ms=-1", 19),
    ("offset_ms=-1&direction=backward", 18),
    ("offset_ms=0", 10),
    ("offset_ms=300", 13),
    ("offset_ms=-900", 10),
    ("frame_index=3&clamp=true", 10),
    ("frame_index=25&clamp=true", 19),
    ("frame_index=-15&clamp=true", 10),
    ("timestamp_ms=0&clamp=true", 10),
    ("timestamp_ms=9000&clamp=true", 19),
    ("timestamp_ms=9000&clamp=true&direction=forward", 19),
    ("timestamp_ms=1510&clamp=true", 15),
]


@pytest.mark.parametrize(("query", "index"), FRAMES)
def test_one_frame(query: str, index: int) -> None:
    """Indices are lifetime indices; times miss by at most the tolerance, in the direction asked for."""
    assert chosen(ten(), query) == [index]


SEGMENTS = [
    ("start_frame_index=-3", [17, 18, 19]),
    ("start_frame_index=-3&end_frame_index=-1", [17, 18]),
    ("start_frame_index=12&end_frame_index=15", [12, 13, 14]),
    ("start_frame_index=0&end_frame_index=12", [10, 11]),
    ("start_frame_index=18&end_frame_index=500", [18, 19]),
    ("start_timestamp_ms=1200&end_timestamp_ms=1400", [12, 13]),
    ("start_timestamp_ms=1201&end_timestamp_ms=1401", [13, 14]),
    ("start_timestamp_ms=0&end_timestamp_ms=1100", [10]),
    ("start_timestamp_ms=-500&end_timestamp_ms=1100", [10]),
    ("start_timestamp_ms=1800", [18, 19]),
    ("start_offset_ms=-200", [17, 18, 19]),
    ("start_offset_ms=-200&end_offset_ms=-100", [17]),
    ("start_offset_ms=-60000", list(range(10, 20))),
    ("start_offset_ms=0&end_offset_ms=200", [10, 11]),
    ("start_offset_ms=0&end_offset_ms=300000", list(range(10, 20))),
    ("start_offset_ms=-300&end_frame_index=18", [16, 17]),
    ("start_frame_index=11&end_timestamp_ms=1300", [11, 12]),
    ("start_frame_index=-2&end_offset_ms=0", [18, 19]),
    ("start_frame_index=0&end_timestamp_ms=1200", [10, 11]),
    ("start_frame_index=-100&end_frame_index=11", [10]),
]


@pytest.mark.parametrize(("query", "indices"), SEGMENTS)
def test_a_segment(query: str, indices: list[int]) -> None:
    """From its start up to but without its end, cut to what is held; start and end may differ in kind."""
    assert chosen(ten(), query) == indices


FAILURES = [
    ("frame_index=20", "frame_not_yet_produced", "held are frames 10 to 19, 1000 to 1900 ms; wait_ms"),
    ("frame_index=-21", "frame_not_yet_produced", "frame_index -21 has not come yet"),
    ("frame_index=9", "frame_evicted", "frame 9 is no longer held"),
    ("frame_index=-11", "frame_evicted", "frame 9 is no longer held"),
    ("timestamp_ms=899", "segment_empty", "no frame is within 100 ms around 899 ms"),
    ("timestamp_ms=2001", "segment_empty", "around 2001 ms"),
    ("timestamp_ms=1950&direction=forward", "segment_empty", "after 1950 ms"),
    ("timestamp_ms=950&direction=backward", "segment_empty", "before 950 ms"),
    ("timestamp_ms=1550&tolerance_ms=49", "segment_empty", "within 49 ms"),
    ("timestamp_ms=1550&tolerance_ms=49&clamp=true", "segment_empty", "within 49 ms"),
    ("offset_ms=-1001", "segment_empty", "around 899 ms"),
    ("start_frame_index=20", "segment_empty", "held are frames"),
    ("start_frame_index=0&end_frame_index=10", "segment_empty", "held are frames"),
    ("start_timestamp_ms=1901", "segment_empty", "held are frames"),
    ("start_timestamp_ms=1510&end_timestamp_ms=1590", "segment_empty", "held are frames"),
    ("start_timestamp_ms=100&end_timestamp_ms=200", "segment_empty", "held are frames"),
    ("start_timestamp_ms=1500&end_frame_index=5", "segment_empty", "held are frames"),
    ("start_timestamp_ms=-5&end_offset_ms=0", "segment_empty", "held are frames"),
    ("start_timestamp_ms=1500&end_timestamp_ms=1500", "segment_invalid", "at or before its start"),
    ("start_timestamp_ms=200&end_timestamp_ms=100", "segment_invalid", "at or before its start"),
    ("start_frame_index=15&end_frame_index=15", "segment_invalid", "at or before its start"),
    ("start_frame_index=-1&end_frame_index=-2", "segment_invalid", "at or before its start"),
    ("start_frame_index=-5&end_frame_index=3", "segment_invalid", "at or before its start"),
    ("start_offset_ms=-100&end_offset_ms=-200", "segment_invalid", "at or before its start"),
    ("start_offset_ms=0&end_offset_ms=0", "segment_invalid", "at or before its start"),
    ("start_timestamp_ms=1500&end_offset_ms=0", "segment_invalid", "at or before its start"),
    ("start_offset_ms=-200&end_frame_index=12", "segment_invalid", "at or before its start"),
    ("start_frame_index=15&end_timestamp_ms=1500", "segment_invalid", "at or before its start"),
]


@pytest.mark.parametrize(("query", "code", "reason"), FAILURES)
def test_what_cannot_be_had(query: str, code: str, reason: str) -> None:
    """Not yet, no longer, nothing there, and a segment that contradicts itself are four answers, with what is held."""
    with pytest.raises(StreamFailure) as caught:
        chosen(ten(), query)
    assert caught.value.code == code
    assert reason in str(caught.value)


EMPTY = [
    ("frame_index=-1", "frame_not_yet_produced", "frame_evicted"),
    ("frame_index=0", "frame_not_yet_produced", "frame_evicted"),
    ("frame_index=3", "frame_not_yet_produced", "frame_not_yet_produced"),
    ("frame_index=-1&clamp=true", "frame_not_yet_produced", "frame_evicted"),
    ("offset_ms=0", "segment_empty", "segment_empty"),
    ("timestamp_ms=0&clamp=true", "segment_empty", "segment_empty"),
    ("start_offset_ms=-5000", "segment_empty", "segment_empty"),
    ("start_offset_ms=5000&end_offset_ms=-1000", "segment_empty", "segment_empty"),
]


@pytest.mark.parametrize(("query", "before", "after"), EMPTY)
def test_a_ring_without_frames(query: str, before: str, after: str) -> None:
    """Before the first frame an index is still to come; after the last has gone it is evicted."""
    ring = ring_of([])
    with pytest.raises(StreamFailure, match="no frame") as caught:
        chosen(ring, query)
    assert caught.value.code == before
    put(ring, 0)
    ring.evict(10**19)
    with pytest.raises(StreamFailure) as caught:
        chosen(ring, query)
    assert caught.value.code == after


def test_a_segment_has_one_frame_a_second() -> None:
    """The last five seconds of 30 frames a second are five frames by default, ten at max_fps 2."""
    ring = ring_of(number * 1000 / 30 for number in range(600))
    assert len(chosen(ring, "start_offset_ms=-5000&max_fps=1")) == 5
    assert len(chosen(ring, "start_offset_ms=-5000&max_fps=2")) == 10


def test_a_slow_stream_is_not_filled_up() -> None:
    """max_fps is a ceiling: every frame is there once."""
    assert chosen(ring_of([0, 2000, 4100]), "start_offset_ms=0&max_fps=30") == [0, 1, 2]


def test_a_stream_at_its_ceiling_keeps_every_frame() -> None:
    """30 frames a second with stamps in whole ms and 10 ms of jitter are all kept at max_fps 30."""
    times = [number * 1000 // 30 + (0, 10, -10, 7)[number % 4] for number in range(1, 90)]
    assert chosen(ring_of([0, *times]), "start_frame_index=0&max_fps=30") == list(range(90))


def test_a_short_segment_is_never_thinned_to_nothing() -> None:
    """A third of a second that holds no grid frame gives its newest one."""
    ring = ring_of(number * 100 for number in range(30))
    assert chosen(ring, "start_timestamp_ms=1900&end_timestamp_ms=2200&max_fps=1") == [21]


def test_the_frame_before_the_segment_counts() -> None:
    """A cell whose first frame lies before the segment, or is gone, has no other frame in its place."""
    times = [number * 100 for number in range(30)]  # at max_fps 1 the cells begin at 0, 500 and 1500 ms
    assert chosen(ring_of(times), "start_timestamp_ms=600&end_timestamp_ms=1700&max_fps=1") == [15]
    assert chosen(ring_of(times, held=24), "start_offset_ms=0&max_fps=1") == [15, 25]


def wait(ring: Ring, query: str) -> list[int]:
    """Ask with ``query`` while a frame comes every 100 ms from 2000 ms on; the indices, then the ms it took."""
    found: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        is_segment = "start_" in query
        asked = f"ovs://streams/a?{query}" + (f"&max_fps={MAX_FPS}" if is_segment else "")
        reference = parse_reference(asked, "video_url" if is_segment else "image_url")
        for number in range(20, 40):
            loop.call_later((number - 19) / 10, put, ring, number * 100)
        found.extend(frame.index for frame in await select_in_time(ring, reference))
        found.append(round((loop.time() - began) * 1000))

    run(main())
    return found


WAITS = [
    ("frame_index=21&wait_ms=1000", [21, 200]),
    ("frame_index=-21&wait_ms=1000", [0, 100]),
    ("frame_index=-1&wait_ms=1000", [19, 0]),
    ("timestamp_ms=2150&direction=forward&wait_ms=1000", [22, 300]),
    ("timestamp_ms=2150&wait_ms=1000&tolerance_ms=50", [21, 200]),
    ("timestamp_ms=2100&direction=backward&tolerance_ms=50&wait_ms=1000", [21, 200]),
    ("offset_ms=-2100&wait_ms=1000", [0, 100]),
    ("offset_ms=2100&tolerance_ms=1&wait_ms=1000", [21, 200]),
    ("frame_index=30&wait_ms=350&clamp=true", [22, 350]),
    ("start_frame_index=19&end_frame_index=22&wait_ms=1000", [19, 20, 21, 200]),
    ("start_timestamp_ms=1950&end_timestamp_ms=2150&wait_ms=1000", [20, 21, 300]),
    ("start_timestamp_ms=2050&wait_ms=1000", [21, 200]),
    ("start_offset_ms=1900&end_offset_ms=2100&wait_ms=1000", [19, 20, 200]),
    ("start_frame_index=19&end_frame_index=50&wait_ms=250", [19, 20, 21, 250]),
    ("start_offset_ms=-100&wait_ms=1000", [18, 19, 0]),
    ("start_offset_ms=-100&end_offset_ms=0&wait_ms=1000", [18, 19, 0]),
]


@pytest.mark.parametrize(("query", "found"), WAITS)
def test_what_is_to_come_is_waited_for(query: str, found: list[int]) -> None:
    """No longer than until it is there; after wait_ms, what is there is taken."""
    assert wait(ring_of(number * 100 for number in range(20)), query) == found


@pytest.mark.parametrize(
    ("query", "code", "took_ms"),
    [
        ("frame_index=90&wait_ms=350", "frame_not_yet_produced", 350),
        ("frame_index=5&wait_ms=1000", "frame_evicted", 0),
        ("timestamp_ms=100&wait_ms=1000", "segment_empty", 0),
        ("timestamp_ms=1550&tolerance_ms=9&wait_ms=1000", "segment_empty", 0),
        ("start_frame_index=4&end_frame_index=8&wait_ms=1000", "segment_empty", 0),
        ("start_frame_index=90&end_frame_index=80&wait_ms=1000", "segment_invalid", 0),
        ("start_timestamp_ms=9000&end_timestamp_ms=9100&wait_ms=400", "segment_empty", 400),
    ],
)
def test_the_past_is_not_waited_for(query: str, code: str, took_ms: int) -> None:
    """What can no longer come fails at once; what does not come, after wait_ms."""

    async def main() -> None:
        part = "video_url" if "start_" in query else "image_url"
        loop = asyncio.get_running_loop()
        ring = ten()
        loop.call_later(0.3, put, ring, 2000)
        with pytest.raises(StreamFailure) as caught:
            await select_in_time(ring, parse_reference(f"ovs://streams/a?{query}", part))
        assert (caught.value.code, round(loop.time() * 1000)) == (code, took_ms)

    run(main())


def test_the_first_frame_may_be_waited_for() -> None:
    """A question that comes before the camera gets its first frame, and one about the last seconds its first one."""
    for query in ("frame_index=-1&wait_ms=1000", "start_offset_ms=-5000&wait_ms=1000", "timestamp_ms=0&wait_ms=900"):
        assert wait(ring_of([]), query) == [0, 100]

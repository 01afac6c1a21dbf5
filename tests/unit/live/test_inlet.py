"""The way into a stream: limits on size and pace, and the reasons that are counted."""

from __future__ import annotations

from vision_bench.live.inlet import FrameLimits, Inlet
from vision_bench.live.registry import Limits, Registry, Stream
from vision_bench.live.ring import Frame

MS = 1_000_000


class _House:
    def __init__(self, limits: FrameLimits, *, ring_bytes: int = 1 << 20) -> None:
        self.now_ns = 10**9
        self.registry = Registry(Limits(ring_bytes=ring_bytes), clock=lambda: self.now_ns, wall_clock=lambda: 0)
        self.stream: Stream = self.registry.create("ann")
        self.inlet = Inlet(self.stream, limits, clock_id="server", clock=lambda: self.now_ns)

    def offer(self, *, width: int = 8, height: int = 8, size_bytes: int = 100) -> Frame | str:
        reason = self.inlet.why_not(width=width, height=height, now_ns=self.now_ns)
        if reason is not None:
            return self.inlet.drop(reason)
        return self.inlet.store(b"x" * size_bytes, width=width, height=height, at_ns=self.now_ns)


def test_a_frame_has_its_stamp() -> None:
    """What is taken carries the reading at which it was stored, on the server's clock."""
    house = _House(FrameLimits())
    frame = house.offer()
    assert isinstance(frame, Frame)
    assert (frame.index, frame.stamps["stored"].ns, frame.stamps["stored"].clock) == (0, house.now_ns, "server")


def test_each_limit_has_its_reason_and_its_count() -> None:
    """Too many pixels or bytes, larger than the ring, not after the last, after the end."""
    house = _House(FrameLimits(frame_bytes=30_000, pixels=64, fps=1000), ring_bytes=20_000)
    assert isinstance(house.offer(), Frame)
    assert house.offer() == "not_after_the_last"
    house.now_ns += 10 * MS
    assert house.offer(width=9) == "too_many_pixels"
    assert house.offer(size_bytes=30_001) == "too_many_bytes"
    assert house.offer(size_bytes=25_000) == "larger_than_the_ring"
    house.registry.delete("ann", house.stream.id)
    assert house.offer() == "ended"
    assert house.stream.dropped == {"too_many_pixels": 1, "too_many_bytes": 1, "ended": 1}


def test_the_pace_is_held_with_a_burst() -> None:
    """At ten a second, twice as many lose half of theirs; a few that come together after a pause are all taken."""
    house = _House(FrameLimits(fps=10))
    taken = 0
    for _ in range(200):
        house.now_ns += 50 * MS
        taken += isinstance(house.offer(), Frame)
    assert 100 <= taken <= 106
    house.now_ns += 2_000 * MS
    for _ in range(5):
        house.now_ns += 1
        assert isinstance(house.offer(), Frame)
    house.now_ns += 1
    assert house.offer() == "too_fast"


def test_a_slow_limit_lets_its_own_pace_through() -> None:
    """One frame every two seconds is what 0.5 a second allows, though that is longer than the burst."""
    house = _House(FrameLimits(fps=0.5))
    for _ in range(4):
        assert isinstance(house.offer(), Frame)
        house.now_ns += 2_000 * MS

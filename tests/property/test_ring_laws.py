"""Laws of the ring: a machine that appends, waits and reads it in any order, against a plain list."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from vision_bench.live.ring import FRAME_OVERHEAD_BYTES, Frame, Ring

LIMIT_BYTES = 8 * FRAME_OVERHEAD_BYTES
RETENTION_NS = 1_000
SIZES = st.integers(0, LIMIT_BYTES + 10)


class RingMachine(RuleBasedStateMachine):
    """The model keeps every frame that was ever taken; the ring must hold exactly its newest ones that fit."""

    def __init__(self) -> None:
        super().__init__()
        self.ring = Ring(limit_bytes=LIMIT_BYTES, retention_ns=RETENTION_NS)
        self.now_ns = 5_000
        self.origin_ns = 0
        self.last_at_ns: int | None = None
        self.taken: list[tuple[int, int, int]] = []  # stream_ns, received_ns, size
        self.refused = 0
        self.held_by_readers: list[tuple[Frame, int, bytes]] = []

    @rule(size=SIZES, step_ns=st.integers(-50, 400), delay_ns=st.integers(0, 300))
    def append(self, size: int, step_ns: int, delay_ns: int) -> None:
        """A frame of any size, that may be late, and may have been long on its way."""
        at_ns = (self.now_ns if self.last_at_ns is None else self.last_at_ns) + step_ns
        self.now_ns = max(self.now_ns, at_ns + delay_ns)
        is_good = size + FRAME_OVERHEAD_BYTES <= LIMIT_BYTES and (self.last_at_ns is None or at_ns > self.last_at_ns)
        frame = self.ring.append(bytes(size), width=1, height=1, at_ns=at_ns, received_ns=self.now_ns)
        assert (frame is not None) == is_good
        if frame is None:
            self.refused += 1
            return
        self.origin_ns = at_ns if not self.taken else self.origin_ns
        assert (frame.index, frame.stream_ns) == (len(self.taken), at_ns - self.origin_ns)
        self.last_at_ns = at_ns
        self.taken.append((frame.stream_ns, self.now_ns, size))

    @rule(pass_ns=st.integers(0, 1_500))
    def let_time_pass(self, pass_ns: int) -> None:
        """Nobody sends anything; the retention still holds when somebody asks."""
        self.now_ns += pass_ns
        self.ring.evict(self.now_ns)

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        """A slow question takes frames and keeps them."""
        if len(self.ring):
            index = data.draw(st.integers(self.ring.first_index, self.ring.next_index - 1))
            frame = self.ring[index]
            self.held_by_readers.append((frame, index, bytes(self.taken[index][2])))

    @invariant()
    def memory_is_bounded(self) -> None:
        """Never more bytes than allowed, counted frame by frame, and never a frame beyond its time."""
        held = list(self.ring)
        assert self.ring.held_bytes == sum(frame.held_bytes for frame in held) <= LIMIT_BYTES
        assert all(frame.received_ns > self.now_ns - RETENTION_NS for frame in held)
        assert len(self.ring._frames) <= 2 * (LIMIT_BYTES // FRAME_OVERHEAD_BYTES) + 66

    @invariant()
    def the_newest_that_fit_are_held(self) -> None:
        """The frames held are the last ones taken, unchanged, and the one before them had no room or was too old."""
        first, last = self.ring.first_index, self.ring.next_index
        assert last == len(self.taken)
        assert [(f.stream_ns, f.received_ns, len(f.jpeg)) for f in self.ring] == self.taken[first:]
        assert self.ring.before_ns == (self.taken[first - 1][0] if first else None)
        if first:
            _, received_ns, size = self.taken[first - 1]
            room = LIMIT_BYTES - self.ring.held_bytes
            is_old = received_ns <= self.now_ns - RETENTION_NS
            assert is_old or size + FRAME_OVERHEAD_BYTES > room

    @invariant()
    def every_refusal_is_counted(self) -> None:
        """Taken and refused together are all that was sent."""
        assert sum(self.ring.refused.values()) == self.refused

    @invariant()
    def times_are_found(self) -> None:
        """Each frame's own time leads to the first frame of that time."""
        for frame in self.ring:
            found = self.ring[self.ring.index_at(frame.stream_ms)]
            assert found.stream_ms == frame.stream_ms and found.index <= frame.index

    @invariant()
    def readers_keep_what_they_took(self) -> None:
        """A frame never changes, whatever became of its place."""
        for frame, index, jpeg in self.held_by_readers:
            assert (frame.index, frame.jpeg) == (index, jpeg)


TestRing = RingMachine.TestCase
TestRing.settings = settings(max_examples=40, stateful_step_count=60, deadline=None)

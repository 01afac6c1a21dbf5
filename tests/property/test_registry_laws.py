"""Laws of leases: owners, limits and ends hold whatever is called in whatever order, and however time passes."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.unit.live.clock import Clock

from vision_bench.live.failures import StreamFailure
from vision_bench.live.registry import Limits, Registry, Stream
from vision_bench.live.shapes import status_body

TTL, TOMBSTONE = 30, 20
LIMITS = Limits(
    ttl_seconds=TTL,
    tombstone_seconds=TOMBSTONE,
    streams_per_owner=2,
    tombstones_per_owner=2,
    streams=3,
    ring_bytes=10_000,
    retention_seconds=15,
)
OWNERS = st.sampled_from(["ann", "bob", "eve"])


class RegistryMachine(RuleBasedStateMachine):
    """The model knows of each stream that was ever created: its owner, when its lease ends, and when it ended."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.told: list[str] = []
        self.registry = Registry(
            LIMITS, clock=self.clock, wall_clock=self.clock.wall_ns, on_end=lambda stream: self.told.append(stream.id)
        )
        self.streams: list[Stream] = []
        self.expires: dict[str, float] = {}
        self.ended: dict[str, tuple[float, str]] = {}

    @property
    def now(self) -> float:
        return self.clock() / 1e9

    def let_leases_run_out(self) -> None:
        for stream_id, at in self.expires.items():
            if at <= self.now and stream_id not in self.ended:
                self.ended[stream_id] = (at, "expired")

    def active(self) -> list[Stream]:
        return [stream for stream in self.streams if stream.id not in self.ended]

    @rule(seconds=st.integers(0, 12))
    def let_time_pass(self, seconds: int) -> None:
        """Seconds in which nobody calls."""
        self.clock.pass_seconds(seconds)
        self.let_leases_run_out()

    @rule(owner=OWNERS)
    def create(self, owner: str) -> None:
        """Refused exactly when the owner, or else the server, has as many as allowed."""
        active = self.active()
        theirs = [stream for stream in active if stream.owner == owner]
        expected = "stream_limit" if len(theirs) >= 2 else "streams_full" if len(active) >= 3 else None
        try:
            stream = self.registry.create(owner)
        except StreamFailure as problem:
            assert problem.code == expected
        else:
            assert expected is None
            self.streams.append(stream)
            self.expires[stream.id] = self.now + TTL

    @rule(data=st.data(), owner=OWNERS, call=st.sampled_from(["find", "active", "keep_alive", "delete"]))
    def call(self, data: st.DataObject, owner: str, call: str) -> None:
        """Of anybody, on any stream there ever was."""
        if not self.streams:
            return
        stream = data.draw(st.sampled_from(self.streams))
        ended = self.ended.get(stream.id)
        is_there = stream.owner == owner and (
            ended is None or (call in {"find", "delete"} and self.is_remembered(stream))
        )
        try:
            getattr(self.registry, call)(owner, stream.id)
        except StreamFailure as problem:
            assert problem.code == "stream_not_found"
            assert not is_there or ended is not None, "an active stream was not found by its owner"
            return
        assert is_there
        if call == "keep_alive":
            self.expires[stream.id] = self.now + TTL
        elif call == "delete" and ended is None:
            self.ended[stream.id] = (self.now, "deleted")

    def is_remembered(self, stream: Stream) -> bool:
        return self.now < self.ended[stream.id][0] + TOMBSTONE

    @rule()
    def sweep(self) -> None:
        """Afterwards no lease is overdue, no frame too old, and no more is remembered than allowed."""
        self.registry.sweep()
        assert set(self.told) == set(self.ended)
        for owner in ("ann", "bob", "eve"):
            assert sum(not stream.is_active and stream.owner == owner for stream in self.registry) <= 2
        assert all(frame.received_ns > self.clock() - 15 * 10**9 for s in self.registry for frame in s.ring)

    @rule(data=st.data())
    def receive(self, data: st.DataObject) -> None:
        """A frame for any stream, also one that has ended."""
        if self.streams:
            stream = data.draw(st.sampled_from(self.streams))
            self.clock.now_ns += 1
            self.let_leases_run_out()
            stream.ring.append(b"jpg", width=1, height=1, at_ns=self.clock(), received_ns=self.clock())

    @invariant()
    def an_end_is_told_once_and_is_for_good(self) -> None:
        """Each stream ends at most once, for the reason and at the moment that the model knows; its frames are gone."""
        assert len(self.told) == len(set(self.told))
        for stream in self.streams:
            if not stream.is_active:
                at, reason = self.ended[stream.id]
                assert (stream.ended_ns, stream.end_reason) == (round(at * 1e9), reason)
                assert len(stream.ring) == 0
                body = status_body(stream, now_ns=self.clock())
                assert (body["state"], body["end_reason"]) == ("ended", reason)


TestRegistry = RegistryMachine.TestCase
TestRegistry.settings = settings(max_examples=40, stateful_step_count=50, deadline=None)

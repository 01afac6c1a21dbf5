"""Leases, owners, limits and what is remembered of a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.live.clock import Clock

from vision_bench.live.failures import StreamFailure
from vision_bench.live.registry import Limits, Registry, Stream

LIMITS = Limits(ttl_seconds=300, tombstone_seconds=100, streams_per_owner=2, tombstones_per_owner=3, streams=3)


class House:
    """A registry with its clock, and the streams that it said have ended."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.clock = Clock()
        self.ended: list[str] = []
        ids = iter(f"s{number}" for number in range(1_000))
        self.registry = Registry(
            limits,
            clock=self.clock,
            wall_clock=self.clock.wall_ns,
            new_id=lambda: next(ids),
            on_end=lambda stream: self.ended.append(stream.id),
        )

    def put(self, stream: Stream, count: int = 1) -> None:
        for _ in range(count):
            self.clock.pass_seconds(0.1)
            stream.ring.append(b"jpg", width=1, height=1, at_ns=self.clock(), received_ns=self.clock())


def refused(call: Callable[[], object]) -> tuple[str, int]:
    with pytest.raises(StreamFailure) as caught:
        call()
    return caught.value.code, caught.value.status


NOT_FOUND = ("stream_not_found", 404)


def test_a_stream_lives_for_its_lease() -> None:
    """300 seconds from its creation, and not one longer; frames that come do not lengthen it."""
    house = House()
    stream = house.registry.create("ann")
    house.clock.pass_seconds(299.8)
    house.put(stream)
    assert house.registry.active("ann", stream.id) is stream
    house.clock.pass_seconds(0.1)
    assert refused(lambda: house.registry.active("ann", stream.id)) == NOT_FOUND
    assert (stream.end_reason, stream.ended_ns, house.ended) == ("expired", 300 * 10**9, ["s0"])


def test_a_keepalive_starts_the_lease_again() -> None:
    """From now, not from when it would have ended; an ended stream stays ended."""
    house = House()
    stream = house.registry.create("ann")
    house.clock.pass_seconds(200)
    assert house.registry.keep_alive("ann", stream.id).expires_ns == 500 * 10**9
    house.clock.pass_seconds(299)
    assert house.registry.active("ann", stream.id) is stream
    house.clock.pass_seconds(1)
    assert refused(lambda: house.registry.keep_alive("ann", stream.id)) == NOT_FOUND
    assert house.registry.find("ann", stream.id).end_reason == "expired"


def test_deleting_twice_is_deleting_once() -> None:
    """Every deletion succeeds as long as the stream is remembered; the end is the first one's."""
    house = House()
    stream = house.registry.create("ann")
    house.registry.delete("ann", stream.id)
    house.clock.pass_seconds(99)
    assert house.registry.delete("ann", stream.id) is stream
    assert (stream.end_reason, stream.ended_ns, house.ended) == ("deleted", 0, ["s0"])
    house.clock.pass_seconds(1)
    assert refused(lambda: house.registry.delete("ann", stream.id)) == NOT_FOUND


def test_an_expired_stream_can_be_deleted_and_stays_expired() -> None:
    """The caller wanted it gone, and it is; the reason is what really happened."""
    house = House()
    stream = house.registry.create("ann")
    house.clock.pass_seconds(310)
    assert house.registry.delete("ann", stream.id).end_reason == "expired"


def test_an_ended_stream_is_read_for_a_while_and_then_forgotten() -> None:
    """Its last numbers stay, its frames do not; the memory counts from the end, not from who noticed it."""
    house = House()
    stream = house.registry.create("ann")
    house.put(stream, 5)
    house.clock.now_ns = 390 * 10**9
    found = house.registry.find("ann", stream.id)
    state = found.state(house.clock())
    assert (state.last_index, state.last_ms, state.retained_count, state.held_bytes > 0) == (4, 400, 5, True)
    assert len(stream.ring) == 0 and stream.ring.held_bytes == 0
    house.clock.now_ns = 400 * 10**9
    assert refused(lambda: house.registry.find("ann", stream.id)) == NOT_FOUND


def test_another_owner_s_stream_is_not_there() -> None:
    """Reading, keeping, deleting and asking give the very answer that an unknown id gives."""
    house = House()
    stream = house.registry.create("ann")
    for call in (house.registry.find, house.registry.active, house.registry.keep_alive, house.registry.delete):
        with pytest.raises(StreamFailure) as foreign:
            call("bob", stream.id)
        with pytest.raises(StreamFailure) as unknown:
            call("bob", "s9")
        assert str(foreign.value).replace("s0", "s9") == str(unknown.value)
        assert foreign.value.code == unknown.value.code == "stream_not_found"
    assert stream.is_active and stream.expires_ns == 300 * 10**9


def test_each_owner_has_a_limit() -> None:
    """The third stream of one owner is 429; one that ended makes room, whether deleted or expired."""
    house = House()
    first, _ = house.registry.create("ann"), house.registry.create("ann")
    assert refused(lambda: house.registry.create("ann")) == ("stream_limit", 429)
    house.registry.delete("ann", first.id)
    house.registry.create("ann")
    house.clock.pass_seconds(300)
    house.registry.create("ann")
    house.registry.create("ann")


def test_the_server_has_a_limit() -> None:
    """The fourth stream of all owners is 503, and hurts nobody else."""
    house = House()
    for owner in ("ann", "ann", "bob"):
        house.registry.create(owner)
    assert refused(lambda: house.registry.create("eve")) == ("streams_full", 503)
    assert sum(stream.is_active for stream in house.registry) == 3


def test_what_is_remembered_is_bounded() -> None:
    """Who creates and deletes for ever is remembered three times; the oldest goes first, others' stay."""
    house = House()
    other = house.registry.create("bob")
    house.registry.delete("bob", other.id)
    for _ in range(50):
        house.clock.pass_seconds(0.1)
        house.registry.delete("ann", house.registry.create("ann").id)
    house.registry.sweep()
    assert [stream.id for stream in house.registry] == ["s0", "s48", "s49", "s50"]


def test_a_sweep_ends_what_nobody_asks_for() -> None:
    """Frames do not outlive their lease or the retention for want of a question."""
    house = House(replace(LIMITS, ttl_seconds=1000))
    stream = house.registry.create("ann")
    house.put(stream, 3)
    house.clock.pass_seconds(601)
    house.registry.sweep()
    assert len(stream.ring) == 0 and stream.is_active
    house.clock.pass_seconds(400)
    house.registry.sweep()
    assert house.ended == [stream.id]


def test_the_server_may_end_a_stream_itself() -> None:
    """A source that ended reaps its stream; it happens once, and an unknown id is nobody's fault."""
    house = House()
    stream = house.registry.create("ann", source="rtsp")
    house.registry.reap(stream.id)
    house.registry.reap(stream.id)
    house.registry.reap("s9")
    assert (stream.end_reason, house.ended) == ("reaped", [stream.id])


def test_ids_are_random_and_the_clocks_are_the_machine_s() -> None:
    """By default an id is a version 4 UUID and a stream is created now."""
    stream = Registry(Limits()).create("ann")
    assert len(stream.id) == 36 and stream.id[14] == "4"
    assert stream.created_at_ms > 1_700_000_000_000

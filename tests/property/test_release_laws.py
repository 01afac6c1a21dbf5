"""Laws of early release: what comes out was sent, whole, in order and once, whatever the network did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.live.rtp import MS, Receiver, arriving, frame_data, payload, sent

from vision_bench.live.release import PATIENCE_NS, FrameAssembler, Packet

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=14)
EVERY_MS = st.sampled_from([8, 33, 100, 500])
SEQUENCES = st.integers(0, 0xFFFF) | st.integers(0xFFF0, 0xFFFF)
TIMESTAMPS = st.integers(0, 2**32 - 1) | st.integers(2**32 - 50_000, 2**32 - 1)
FAR_NS = 10**15


@dataclass(frozen=True)
class Film:
    """Frames as they were sent."""

    sizes: list[int]
    packets: list[Packet]

    def frame_of(self, data: str) -> int:
        """Number of the frame with these bytes; fails if no frame was sent with just these."""
        return [frame_data(frame, size).decode() for frame, size in enumerate(self.sizes)].index(data)


@st.composite
def films(draw: st.DrawFn) -> Film:
    """Some frames of a few packets each, from anywhere in both number ranges, padded or not."""
    sizes = draw(SIZES)
    packets = sent(
        sizes,
        every_ms=draw(EVERY_MS),
        sequence=draw(SEQUENCES),
        timestamp=draw(TIMESTAMPS),
        padding=draw(st.sampled_from([0, 0, 1])),
    )
    return Film(sizes, packets)


@given(films())
def test_without_trouble_each_frame_leaves_with_its_last_packet(film: Film) -> None:
    """No frame waits for anything, and nothing is ever kept of a frame that left."""
    receiver = Receiver().take(film.packets)
    assert [film.frame_of(data) for data in receiver.data] == list(range(len(film.sizes)))
    assert receiver.released_ns == [packet.arrived_ns for packet in film.packets if packet.marker]
    assert receiver.losses == 0 and receiver.assembler.kept == 0


@given(films(), st.booleans(), st.data())
def test_reordering_and_duplicates_lose_nothing(film: Film, has_marker: bool, data: st.DataObject) -> None:
    """Within the patience every frame comes out, in order, once; without markers the last is held for its successor."""
    packets = [replace(packet, marker=packet.marker and has_marker) for packet in film.packets]
    delays = st.integers(0, PATIENCE_NS // MS // 2)
    late_ms = [packet.arrived_ns / MS + data.draw(delays) for packet in packets[1:]]
    network = arriving(packets, [packets[0].arrived_ns / MS, *late_ms])
    for place in data.draw(st.lists(st.integers(0, len(network) - 1), max_size=5)):
        network.append(replace(network[place], arrived_ns=network[place].arrived_ns + data.draw(delays) * MS))
    network.sort(key=lambda packet: packet.arrived_ns)
    receiver = Receiver().take(network)
    frames = len(film.sizes) if has_marker else len(film.sizes) - 1
    assert [film.frame_of(got) for got in receiver.data] == list(range(frames))
    assert receiver.losses == 0


@given(films(), st.sets(st.integers(0, 120)))
def test_losses_cost_their_own_frames_alone(film: Film, lost: set[int]) -> None:
    """Every frame that arrived whole comes out, no other does, and each gap in what comes out was reported."""
    network = [packet for place, packet in enumerate(film.packets) if place not in lost]
    receiver = Receiver().take(network)
    receiver.run_until(FAR_NS)
    arrived = {packet.payload for packet in network}
    whole = [
        frame for frame, size in enumerate(film.sizes) if all(payload(frame, part) in arrived for part in range(size))
    ]
    got = [film.frame_of(text) for text in receiver.data]
    assert got == whole
    gaps = sum(b - a > 1 for a, b in pairwise(got))
    assert receiver.losses >= gaps
    assert not (receiver.losses and len(network) == len(film.packets))


@given(films(), st.sets(st.integers(0, 120)), st.sets(st.integers(0, 13)))
def test_an_intact_frame_builds_on_nothing_that_is_missing(film: Film, lost: set[int], keys: set[int]) -> None:
    """A frame is called intact if all since its key frame came out, and only then."""
    stamps = list(dict.fromkeys(packet.timestamp for packet in film.packets))
    marked = [replace(packet, is_key=stamps.index(packet.timestamp) in keys) for packet in film.packets]
    receiver = Receiver().take(packet for place, packet in enumerate(marked) if place not in lost)
    receiver.run_until(FAR_NS)
    got = [film.frame_of(text) for text in receiver.data]
    for frame, number in zip(receiver.frames, got, strict=True):
        key = max((key for key in keys if key <= number), default=None)
        assert frame.is_key == (number in keys)
        assert frame.is_intact == (key is not None and set(range(key, number)) <= set(got))


@given(films(), st.sets(st.integers(0, 120)))
def test_no_frame_waits_longer_than_the_patience(film: Film, lost: set[int]) -> None:
    """From a frame's last packet to its release it is at most 250 ms, whatever was lost before it."""
    receiver = Receiver().take(packet for place, packet in enumerate(film.packets) if place not in lost)
    receiver.run_until(FAR_NS)
    for frame, at_ns in zip(receiver.frames, receiver.released_ns, strict=True):
        assert frame.last_arrived_ns <= at_ns <= frame.last_arrived_ns + PATIENCE_NS


@given(films(), st.sets(st.integers(0, 120)), st.booleans(), st.data())
def test_under_all_troubles_at_once_only_sent_frames_come_out(
    film: Film, lost: set[int], has_marker: bool, data: st.DataObject
) -> None:
    """Losses, any delay and duplicates: what comes out was sent so, in order, at most once."""
    packets = [replace(p, marker=p.marker and has_marker) for n, p in enumerate(film.packets) if n not in lost]
    packets += [packet for packet in packets if data.draw(st.integers(0, 9)) == 0]
    network = arriving(packets, [packet.arrived_ns / MS + data.draw(st.integers(0, 900)) for packet in packets])
    receiver = Receiver().take(network)
    receiver.run_until(FAR_NS)
    got = [film.frame_of(text) for text in receiver.data]
    assert all(a < b for a, b in pairwise(got))


@given(films(), st.sets(st.integers(0, 120)) | st.builds(range, st.integers(0, 50), st.integers(50, 120)))
def test_a_small_capacity_is_kept(film: Film, lost: set[int] | range) -> None:
    """With room for 12 packets, and more than that lost in a row: sent frames only, in order, and never more kept."""
    receiver = Receiver(FrameAssembler(capacity=12))
    receiver.take(packet for place, packet in enumerate(film.packets) if place not in lost)
    receiver.run_until(FAR_NS)
    got = [film.frame_of(text) for text in receiver.data]
    assert all(a < b for a, b in pairwise(got))
    assert receiver.most_kept <= 12


PACKETS = st.builds(
    Packet,
    sequence=st.sampled_from([0, 1, 2, 3, 4, 5, 9, 40, 65_534, 65_535, 30_000, 30_001]) | st.integers(0, 0xFFFF),
    timestamp=st.sampled_from([0, 1, 2, 3000, 2**32 - 1]),
    marker=st.booleans(),
    payload=st.sampled_from([b"", b"a", b"bc"]),
    arrived_ns=st.integers(0, 10**10),
    starts=st.booleans(),
    ends=st.booleans(),
)


@given(st.lists(PACKETS | st.integers(0, 10**10), max_size=80), st.integers(8, 40))
def test_nonsense_is_survived_in_bounded_room(story: list[Packet | int], capacity: int) -> None:
    """Any packets at any time, and the clock looked at in between: no error, no frame without bytes, no growth."""
    assembler = FrameAssembler(capacity=capacity)
    for event in story:
        released = assembler.expire(event) if isinstance(event, int) else assembler.add(event)
        assert all(frame.data and frame.packets for frame in released.frames)
        assert assembler.kept <= capacity


@given(films(), st.lists(PACKETS, max_size=20))
def test_after_nonsense_an_honest_sender_is_understood(film: Film, nonsense: list[Packet]) -> None:
    """Whatever came before, of 60 good frames in a row most come out, and the latest; believed markers or not."""
    receiver = Receiver(FrameAssembler(capacity=16))
    for packet in nonsense:
        receiver.assembler.add(replace(packet, arrived_ns=0))
    honest = sent([2] * 60, sequence=film.packets[0].sequence, timestamp=77_777)
    receiver.take(replace(packet, arrived_ns=packet.arrived_ns + 10**12) for packet in honest)
    assert receiver.data[-1] in {"<58.0><58.1>", "<59.0><59.1>"}
    assert len(receiver.data) >= 40

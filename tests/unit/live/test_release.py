"""Frames are handed on at their last packet, and only whole ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.live.rtp import MS, Receiver, arriving, frame_data, sent

from vision_bench.live.release import CAPACITY, PATIENCE_NS, EncodedFrame, FrameAssembler, Packet


def whole(*frames: tuple[int, int]) -> list[str]:
    """Data of frames given as (number, packets)."""
    return [frame_data(frame, packets).decode() for frame, packets in frames]


@pytest.mark.parametrize("every_ms", [33, 100, 500])
def test_a_frame_leaves_with_its_last_packet(every_ms: float) -> None:
    """At any frame rate the frame waits for nothing but itself: the next frame's first packet plays no part."""
    packets = sent([3, 1, 4], every_ms=every_ms)
    receiver = Receiver().take(packets)
    assert receiver.data == whole((0, 3), (1, 1), (2, 4))
    assert receiver.released_ns == [packets[place].arrived_ns for place in (2, 3, 7)]
    assert receiver.losses == 0


def test_a_released_frame_says_what_it_is_and_when_it_came() -> None:
    """Its timestamp as sent, its bytes, its packets, and the arrival of the first and the last of them."""
    packets = arriving(sent([3], timestamp=90_000), [5, 9, 7])
    assert Receiver().take(packets).frames == [EncodedFrame(90_000, frame_data(0, 3), 3, 5 * MS, 9 * MS)]


def test_without_markers_a_frame_leaves_with_the_next_one() -> None:
    """As aiortc has it: the first packet of another frame ends the one before; the last frame is held."""
    packets = sent([2, 2, 2], has_marker=False)
    receiver = Receiver().take(packets)
    assert receiver.data == whole((0, 2), (1, 2))
    assert receiver.released_ns == [packets[2].arrived_ns, packets[4].arrived_ns]


def test_a_marker_inside_a_fragmented_unit_is_not_believed() -> None:
    """The payload says that more must come, so the frame is held for it, and all of it comes out."""
    first, second, third = sent([3])
    packets = [first, replace(second, marker=True, ends=False), third]
    assert Receiver().take(packets).data == whole((0, 3))


def test_packets_in_any_order_make_one_frame() -> None:
    """The marker may come first; the frame leaves when the hole before it is filled."""
    packets = sent([2, 4])
    receiver = Receiver().take([*packets[:2], packets[5], packets[3], packets[4], packets[2]])
    assert receiver.data == whole((0, 2), (1, 4)) and receiver.losses == 0


def test_a_hole_that_is_filled_sets_all_free_at_once() -> None:
    """Frames that were complete behind it leave with that one packet, not one a packet."""
    packets = sent([2, 2, 2, 2], every_ms=10)
    late = arriving(packets, [0, 1, 10, 99, 20, 21, 30, 31])
    receiver = Receiver().take(late)
    assert receiver.data == whole((0, 2), (1, 2), (2, 2), (3, 2)) and receiver.losses == 0
    assert [at_ns // MS for at_ns in receiver.released_ns] == [1, 99, 99, 99]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_frame_with_a_hole_never_leaves(lost: int) -> None:
    """Whichever packet is lost, the frame is let go, the next comes out whole, and a key frame is asked for once."""
    packets = sent([2, 3, 2])
    del packets[2 + lost]
    receiver = Receiver().take(packets)
    receiver.run_until(10**12)
    assert receiver.data == whole((0, 2), (2, 2))
    assert receiver.losses == 1 and receiver.assembler.kept == 0


def test_a_hole_is_waited_for_and_no_longer() -> None:
    """The frame behind it leaves 250 ms after the first packet behind it came, without the help of another packet."""
    packets = sent([2, 3, 2], every_ms=10)
    del packets[3]
    receiver = Receiver().take(packets)
    assert receiver.data == whole((0, 2))
    assert receiver.assembler.deadline_ns == 12 * MS + PATIENCE_NS
    receiver.run_until(10**12)
    assert receiver.data == whole((0, 2), (2, 2))
    assert receiver.released_ns[-1] == 262 * MS
    assert receiver.assembler.deadline_ns is None


def test_a_packet_that_was_sent_again_closes_the_hole() -> None:
    """Within the patience nothing is lost and nothing is asked for."""
    packets = sent([2, 3, 2], every_ms=10)
    late = arriving(packets, [0, 1, 10, 200, 12, 20, 21])
    receiver = Receiver().take(late)
    assert receiver.data == whole((0, 2), (1, 3), (2, 2)) and receiver.losses == 0


def test_too_late_is_lost() -> None:
    """A packet that comes after its frame was let go changes nothing."""
    packets = sent([2, 3, 2], every_ms=10)
    receiver = Receiver().take(arriving(packets, [0, 1, 10, 400, 12, 20, 21]))
    assert receiver.data == whole((0, 2), (2, 2)) and receiver.losses == 1


def test_duplicates_change_nothing() -> None:
    """Each packet three times, at once and again later."""
    packets = sent([3, 2, 1])
    receiver = Receiver().take(copy for packet in packets for copy in (packet, packet))
    receiver.take(replace(packet, arrived_ns=10**9) for packet in packets)
    assert receiver.data == whole((0, 3), (1, 2), (2, 1)) and receiver.losses == 0


def test_numbers_wrap_round() -> None:
    """65535 is followed by 0, and a timestamp of 2**32 - 1 by a small one, in the middle of a frame as between two."""
    packets = sent([3, 3, 3], sequence=65_531, timestamp=2**32 - 9_000)
    receiver = Receiver().take(packets)
    assert receiver.data == whole((0, 3), (1, 3), (2, 3)) and receiver.losses == 0
    assert [frame.timestamp for frame in receiver.frames] == [2**32 - 9_000, 0, 9_000]


def test_a_listener_who_comes_late_begins_with_a_start() -> None:
    """The rest of a frame whose beginning nobody saw is let go, without asking for anything."""
    packets = sent([4, 2, 2])[2:]
    receiver = Receiver().take(packets)
    assert receiver.data == whole((1, 2), (2, 2)) and receiver.losses == 0


def test_a_frame_begins_where_another_ends_whatever_its_payload_says() -> None:
    """A kind of payload that is not known to start a frame does, right behind the end of one, also after a loss."""
    packets = [replace(packet, starts=packet.sequence == 0) for packet in sent([2, 2, 2, 2])]
    assert Receiver().take(packets).data == whole((0, 2), (1, 2), (2, 2), (3, 2))
    del packets[1]
    receiver = Receiver().take(packets)
    receiver.run_until(10**12)
    assert receiver.data == whole((2, 2), (3, 2))


def test_a_payload_that_could_begin_a_frame_is_not_taken_for_one_within() -> None:
    """The second half of a frame, such as its second slice, never leaves without the first: neither when the packet
    before it is lost, nor when a listener who comes late hears the packet before it."""
    packets = [replace(packet, starts=True) for packet in sent([3, 2])]
    receiver = Receiver().take([packets[0], packets[2], *packets[3:]])
    receiver.run_until(10**12)
    assert receiver.data == whole((1, 2)) and receiver.losses == 1
    late = [replace(packets[1], starts=False), *packets[2:]]
    assert Receiver().take(late).data == whole((1, 2))


def test_frames_after_a_loss_are_called_damaged_until_a_key_frame() -> None:
    """A picture that builds on one that never came may be wrong; so may all before the first key frame."""
    packets = [replace(packet, is_key=packet.sequence in (1, 6)) for packet in sent([1, 1, 1, 2, 1, 1, 1])]
    del packets[3]
    receiver = Receiver().take(packets)
    receiver.run_until(10**12)
    assert receiver.data == whole((0, 1), (1, 1), (2, 1), (4, 1), (5, 1), (6, 1))
    assert [frame.is_key for frame in receiver.frames] == [False, True, False, False, True, False]
    assert [frame.is_intact for frame in receiver.frames] == [False, True, True, False, True, True]


def test_padding_belongs_to_no_frame() -> None:
    """Empty packets behind, before and inside frames, with the timestamp of the frame before, do no harm."""
    receiver = Receiver().take(sent([2, 3, 1], padding=2))
    assert receiver.data == whole((0, 2), (1, 3), (2, 1))
    assert receiver.losses == 0 and receiver.assembler.believes_marker and receiver.assembler.kept == 0
    first, second = sent([2])
    inside = [first, replace(first, sequence=1, payload=b"", timestamp=7), replace(second, sequence=2)]
    assert Receiver().take(inside).data == whole((0, 2))


def test_endless_padding_is_no_loss() -> None:
    """A sender that only probes for bandwidth is asked for nothing and fills nothing."""
    packets = sent([1], padding=5 * CAPACITY)
    receiver = Receiver().take(packets)
    assert receiver.losses == 0 and receiver.most_kept <= 1


def test_a_sender_that_marks_every_packet_is_found_out() -> None:
    """The first frame is torn, which costs a key frame; from then on frames are whole, and leave with the next one."""
    packets = [replace(packet, marker=True) for packet in sent([3, 3, 3, 3])]
    receiver = Receiver().take(packets)
    assert receiver.data == ["<0.0>", *whole((1, 3), (2, 3))]
    assert receiver.losses == 1 and not receiver.assembler.believes_marker


def test_a_sender_that_begins_anew_is_followed() -> None:
    """A jump of the numbers is a new beginning when two packets in a row say so; what was half done is let go."""
    before, after = sent([2, 2])[:3], sent([2, 2], sequence=40_000, timestamp=5)
    receiver = Receiver().take([*before, *(replace(packet, arrived_ns=10**9) for packet in after)])
    assert receiver.data == whole((0, 2), (0, 2), (1, 2)) and receiver.losses == 1


def test_a_stray_packet_moves_nothing() -> None:
    """One packet with a number far off, however often it comes between others, is left alone."""
    packets = sent([2, 2, 2])
    stray = Packet(sequence=30_000, timestamp=1, marker=True, payload=b"stray", arrived_ns=0)
    receiver = Receiver().take(packets[:1])
    for packet in packets[1:]:
        receiver.take([replace(stray, arrived_ns=packet.arrived_ns), packet])
    assert receiver.data == whole((0, 2), (1, 2), (2, 2)) and receiver.losses == 0


def test_strays_in_a_row_with_others_between_move_nothing() -> None:
    """Only packets that come right after each other say that a sender began anew."""
    packets = sent([1, 1, 1])
    strays = [Packet(30_000 + n, timestamp=1, marker=True, payload=b"stray", arrived_ns=0) for n in range(3)]
    receiver = Receiver().take(packet for pair in zip(packets, strays, strict=True) for packet in pair)
    assert receiver.data == whole((0, 1), (1, 1), (2, 1)) and receiver.losses == 0


def test_a_frame_that_never_ends_is_let_go() -> None:
    """No more packets are kept than the capacity, whatever one frame holds; the next frame comes out."""
    receiver = Receiver(FrameAssembler(capacity=64)).take(sent([500, 2], every_ms=1000))
    assert receiver.data == whole((1, 2))
    assert receiver.most_kept <= 64 and receiver.losses == 1


def test_a_hole_is_given_up_when_too_much_stands_behind_it() -> None:
    """However great the patience, a hole holds back fewer packets than the capacity."""
    packets = sent([2] * 100, every_ms=1)
    del packets[3]
    receiver = Receiver(FrameAssembler(capacity=64, patience_ns=10**15)).take(packets)
    assert receiver.data == whole((0, 2), *((frame, 2) for frame in range(2, 100)))
    assert receiver.most_kept <= 64 and receiver.losses == 1

"""RTP packets in, whole encoded frames out, each as soon as its last packet is there.

aiortc hands a frame on when the next frame's first packet comes, which at 2 frames a second is half a second late. Here
the marker bit, which senders set on a frame's last packet, releases it, and only a run without a hole does so. What
aiortc does, and how this takes its place, is in docs/decisions/0021-early-release.md.

No clock, no socket, no codec: what a payload tells about frames is in the packet's flags, which ``payloads`` reads.
"""

from __future__ import annotations

from dataclasses import dataclass

CAPACITY = 1_024
"""Packets from the oldest that is kept to the newest: 1.2 MB of the usual size, more than a key frame takes."""
PATIENCE_NS = 250_000_000
"""How long a hole is waited for. A lost packet is asked for again at once, and comes after one round trip or never."""


@dataclass(frozen=True, slots=True)
class Packet:
    """One RTP packet of one video stream, its payload already without the codec's own packet header."""

    sequence: int
    """0 to 65535, wrapping round."""
    timestamp: int
    """0 to 2**32 - 1, wrapping round; the same for all packets of a frame."""
    marker: bool
    payload: bytes
    """Empty for padding, which belongs to no frame."""
    arrived_ns: int
    starts: bool = True
    """Nothing that decoding needs comes before it in its frame, as far as the payload tells."""
    ends: bool = True
    """It may be the last of its frame: False inside a fragmented unit, whatever the marker says."""
    is_key: bool = True
    """Part of a frame that is decoded without any other, as far as the payload tells."""


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """One frame, complete. Its timestamp is as it was sent, not unwrapped."""

    timestamp: int
    data: bytes
    packets: int
    first_arrived_ns: int
    last_arrived_ns: int
    is_key: bool = True
    is_intact: bool = True
    """Every frame since the last key frame was handed on before it; otherwise its picture may be damaged."""


@dataclass(frozen=True, slots=True)
class Released:
    """What one packet completed. ``is_lost``: frames before these are missing, so ask the sender for a key frame."""

    frames: tuple[EncodedFrame, ...] = ()
    is_lost: bool = False


class FrameAssembler:
    """Puts the packets of one sender in order and takes frames off them.

    A frame is complete when every packet from the end of the frame before it is there, up to one with the marker, or up
    to a packet of another frame: senders that never set the marker are served as aiortc serves them. A sender that sets
    it in mid-frame is found out when the rest of the frame comes; that frame is broken, and from then on the sender's
    markers are not believed.

    A hole is waited for until ``patience_ns`` after the first packet behind it, or until ``capacity`` packets have
    passed; then everything up to the next start of a frame is let go. ``deadline_ns`` says when to call ``expire``, so
    that the frame behind a hole need not wait for the packet after it.
    """

    def __init__(self, *, capacity: int = CAPACITY, patience_ns: int = PATIENCE_NS) -> None:
        self.capacity = capacity
        self.patience_ns = patience_ns
        self.believes_marker = True
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._pending: dict[int, Packet] = {}  # by sequence number, which does not wrap round in here
        self._highest: int | None = None
        self._floor: int | None = None  # packets below are done with, whether taken or let go
        self._next: int | None = None  # where the next frame begins; None: not known, at the start and after a loss
        self._scanned = 0  # the run from _next up to here is whole, and belongs to one frame
        self._timestamp: int | None = None  # that frame's
        self._taken_timestamp: int | None = None
        self._broken_timestamp: int | None = None
        self._hole: int | None = None
        self._far: Packet | None = None
        self._is_lost = False
        self._is_intact = False
        self.deadline_ns: int | None = None

    @property
    def kept(self) -> int:
        """Packets that wait for others; never more than ``capacity``."""
        return len(self._pending)

    def add(self, packet: Packet) -> Released:
        """Take a packet, in any order and any number of times."""
        number = self._unwrapped(packet.sequence)
        if self._highest is not None and abs(number - self._highest) >= self.capacity:
            return self._take_far(packet)
        self._far = None
        if (self._floor is not None and number < self._floor) or number in self._pending:
            return Released()
        self._highest = number if self._highest is None else max(self._highest, number)
        self._pending[number] = packet
        return self._advance(packet.arrived_ns)

    def expire(self, now_ns: int) -> Released:
        """Give up the hole whose ``deadline_ns`` has passed, if it has."""
        return self._advance(now_ns)

    def _unwrapped(self, sequence: int) -> int:
        if self._highest is None:
            return sequence
        return self._highest + (sequence - self._highest + 0x8000) % 0x10000 - 0x8000

    def _take_far(self, packet: Packet) -> Released:
        """A number far from all others is a stray, unless its successor follows at once: then the sender began anew."""
        before, self._far = self._far, packet
        if before is None or packet.sequence != (before.sequence + 1) % 0x10000:
            return Released()
        self._begin_anew()
        frames = self.add(before).frames + self.add(packet).frames
        return Released(frames, is_lost=True)

    def _advance(self, now_ns: int) -> Released:
        frames: list[EncodedFrame] = []
        while True:
            frame = self._take_frame()
            if frame is not None:
                frames.append(frame)
            elif self._has_waited_enough(now_ns):
                self._let_go()
            else:
                break
        is_lost, self._is_lost = self._is_lost, False
        return Released(tuple(frames), is_lost)

    def _take_frame(self) -> EncodedFrame | None:
        if self._next is None and not self._find_start():
            return None
        while (packet := self._pending.get(self._scanned)) is not None:
            if not packet.payload and self._timestamp is None:
                self._pass_over()
            elif not packet.payload:
                self._scanned += 1
            elif self._timestamp is None and packet.timestamp == self._taken_timestamp:
                self._drop_rest_of_taken()
            elif self._timestamp not in (None, packet.timestamp):
                return self._cut()
            else:
                self._timestamp = packet.timestamp
                self._scanned += 1
                if packet.marker and packet.ends and self.believes_marker:
                    return self._cut()
        return None

    def _cut(self) -> EncodedFrame:
        """The frame that ends where the run has been scanned to."""
        run = [packet for packet in self._pop_below(self._scanned) if packet.payload]
        self._next = self._floor = self._scanned
        self._taken_timestamp, self._timestamp = self._timestamp, None
        is_key = any(packet.is_key for packet in run)
        self._is_intact = self._is_intact or is_key
        return EncodedFrame(
            timestamp=run[0].timestamp,
            data=b"".join(packet.payload for packet in run),
            packets=len(run),
            first_arrived_ns=min(packet.arrived_ns for packet in run),
            last_arrived_ns=max(packet.arrived_ns for packet in run),
            is_key=is_key,
            is_intact=self._is_intact,
        )

    def _drop_rest_of_taken(self) -> None:
        """More of the frame that was handed on as complete: its marker was none, and it is broken now."""
        self._is_lost = self._is_lost or self.believes_marker
        self._is_intact = False
        self.believes_marker = False
        self._pass_over()

    def _pass_over(self) -> None:
        """Let go of one packet that begins no frame."""
        self._scanned += 1
        self._pop_below(self._scanned)
        self._next = self._floor = self._scanned

    def _find_start(self) -> bool:
        """Set ``_next`` to the first packet that certainly begins a frame; False if there is none."""
        for number in sorted(self._pending):
            packet, before = self._pending[number], self._pending.get(number - 1)
            is_after_other = before is not None and before.payload and before.timestamp != packet.timestamp
            is_inside = before is not None and before.payload and before.timestamp == packet.timestamp
            is_broken = packet.timestamp == self._broken_timestamp
            if packet.payload and (packet.starts or is_after_other) and not (is_inside or is_broken):
                self._pop_below(number)
                self._next = self._floor = self._scanned = number
                self._broken_timestamp = None
                return True
        if self._highest is not None:
            self._pop_below(self._highest - self.capacity + 1)
        return False

    def _has_waited_enough(self, now_ns: int) -> bool:
        hole = self._scanned
        if self._next is None or self._highest is None or self._highest < self._next:
            self._hole = self.deadline_ns = None
            return False
        if self._highest - self._next >= self.capacity - 1:
            return True
        if self._highest < hole:
            self._hole = self.deadline_ns = None
            return False
        if self._hole != hole:
            self._hole = hole
            behind_ns = min(packet.arrived_ns for number, packet in self._pending.items() if number > hole)
            self.deadline_ns = behind_ns + self.patience_ns
        return self.deadline_ns is not None and now_ns >= self.deadline_ns

    def _let_go(self) -> None:
        """Give the broken frame up; what is behind the hole stays, and may still be completed."""
        self._is_lost = True
        self._is_intact = False
        self._pop_below(self._scanned)
        self._floor, self._next = self._scanned, None
        self._broken_timestamp, self._timestamp = self._timestamp, None
        self._hole = self.deadline_ns = None

    def _pop_below(self, number: int) -> list[Packet]:
        return [self._pending.pop(old) for old in sorted(self._pending) if old < number]

"""RTP packets of made-up frames, as a sender would number them and a network would deliver them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from vision_bench.live.release import EncodedFrame, FrameAssembler, Packet, Released

MS = 1_000_000


def frame_data(frame: int, packets: int) -> bytes:
    """What the frame's packets hold, joined: unlike any other frame's, or any part of one."""
    return b"".join(payload(frame, place) for place in range(packets))


def payload(frame: int, place: int) -> bytes:
    return f"<{frame}.{place}>".encode()


def sent(
    sizes: Sequence[int],
    *,
    every_ms: float = 100,
    sequence: int = 0,
    timestamp: int = 0,
    has_marker: bool = True,
    padding: int = 0,
) -> list[Packet]:
    """Frames of ``sizes`` packets each, one ms a packet, ``padding`` empty packets after each frame."""
    packets: list[Packet] = []
    for frame, size in enumerate(sizes):
        for place in range(size + padding):
            packets.append(
                Packet(
                    sequence=(sequence + len(packets)) % 0x10000,
                    timestamp=(timestamp + frame * round(every_ms * 90)) % 2**32,
                    marker=has_marker and place == size - 1,
                    payload=payload(frame, place) if place < size else b"",
                    arrived_ns=round((frame * every_ms + place) * MS),
                    starts=place == 0,
                )
            )
    return packets


def arriving(packets: Iterable[Packet], times_ms: Iterable[float]) -> list[Packet]:
    """The packets with other times of arrival, in the order of those."""
    moved = [replace(packet, arrived_ns=round(at_ms * MS)) for packet, at_ms in zip(packets, times_ms, strict=True)]
    return sorted(moved, key=lambda packet: packet.arrived_ns)


class Receiver:
    """An assembler whose deadlines are kept, and all that it released, with the moment of each."""

    def __init__(self, assembler: FrameAssembler | None = None) -> None:
        self.assembler = assembler or FrameAssembler()
        self.frames: list[EncodedFrame] = []
        self.released_ns: list[int] = []
        self.losses = 0
        self.most_kept = 0

    def take(self, packets: Iterable[Packet]) -> Receiver:
        for packet in packets:
            self.run_until(packet.arrived_ns)
            self._note(self.assembler.add(packet), packet.arrived_ns)
        return self

    def run_until(self, now_ns: int) -> None:
        while self.assembler.deadline_ns is not None and self.assembler.deadline_ns <= now_ns:
            at_ns = self.assembler.deadline_ns
            self._note(self.assembler.expire(at_ns), at_ns)

    def _note(self, released: Released, at_ns: int) -> None:
        self.frames += released.frames
        self.released_ns += [at_ns] * len(released.frames)
        self.losses += released.is_lost
        self.most_kept = max(self.most_kept, self.assembler.kept)

    @property
    def data(self) -> list[str]:
        """Which frames came out, as their first payloads and count."""
        return [frame.data.decode() for frame in self.frames]

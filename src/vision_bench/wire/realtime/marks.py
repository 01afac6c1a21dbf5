"""What a reference server writes into its pictures, as bits: which picture this is and what was at work on it.

::

    24 bits  number of the picture in the session, from 0
    16 bits  number of its chunk
    32 bits  first event at work: CRC-32 of its id, 0 for none
    32 bits  second one (a prompt and a camera command can be at work at once, no more)
    16 bits  check: CRC-16 of the bits before

Highest bit first. Numbers too large for their place lose their upper bits.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

EVENTS = 2
FRAME_BITS, CHUNK_BITS, EVENT_BITS, CHECK_BITS = 24, 16, 32, 16
BITS = FRAME_BITS + CHUNK_BITS + EVENTS * EVENT_BITS + CHECK_BITS
_CHECK_START = 0xFFFF  # else a black picture would pass for a mark of zeros


@dataclass(frozen=True, slots=True)
class Marks:
    """What one picture says of itself."""

    frame: int
    chunk: int
    event_digests: tuple[int, ...] = ()
    """Of the events at work, at most two; see :func:`event_digest`."""


def event_digest(event_id: str) -> int:
    """The 32 bits that stand for an event: never 0."""
    return binascii.crc32(event_id.encode("utf-8", "surrogatepass")) or 1


def marks_of(frame: int, chunk: int, active_event_ids: Iterable[str]) -> Marks:
    """The marks of a picture that is made under those events."""
    return Marks(frame, chunk, tuple(event_digest(event_id) for event_id in active_event_ids)[:EVENTS])


def to_bits(marks: Marks) -> list[bool]:
    """(BITS,) what is to be drawn."""
    bits = [*_bits(marks.frame, FRAME_BITS), *_bits(marks.chunk, CHUNK_BITS)]
    for place in range(EVENTS):
        digest = marks.event_digests[place] if place < len(marks.event_digests) else 0
        bits += _bits(digest, EVENT_BITS)
    return [*bits, *_bits(_check(bits), CHECK_BITS)]


def from_bits(bits: Sequence[bool]) -> Marks | None:
    """The marks that (BITS,) ``bits`` hold; None when they hold none or one was misread."""
    if len(bits) != BITS or _number(bits[-CHECK_BITS:]) != _check(bits[:-CHECK_BITS]):
        return None
    chunk_at = FRAME_BITS + CHUNK_BITS
    places = [bits[chunk_at + place * EVENT_BITS :][:EVENT_BITS] for place in range(EVENTS)]
    digests = tuple(digest for place in places if (digest := _number(place)))
    return Marks(_number(bits[:FRAME_BITS]), _number(bits[FRAME_BITS:chunk_at]), digests)


def _bits(value: int, count: int) -> list[bool]:
    return [bool(value >> place & 1) for place in reversed(range(count))]


def _number(bits: Sequence[bool]) -> int:
    value = 0
    for bit in bits:
        value = value << 1 | bit
    return value


def _check(bits: Sequence[bool]) -> int:
    size = len(bits) // 8
    return binascii.crc_hqx(_number(bits).to_bytes(size, "big"), _CHECK_START)

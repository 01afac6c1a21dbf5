"""What the payload of an RTP packet tells of its frame: whether it can begin it, end it, and stand without others; and
what a whole frame tells of its size.

VP8 by RFC 7741, H.264 by RFC 6184. Only headers are read; a payload that is cut short tells nothing and raises nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flags:
    """For ``release.Packet``. ``is_key``: part of a frame that is decoded without any other."""

    starts: bool
    ends: bool
    is_key: bool


_NOTHING = Flags(starts=False, ends=True, is_key=False)

_IDR_SLICE = 5
_SLICES = frozenset({1, 2, _IDR_SLICE})
"""Types whose first bit after the header says that the slice is its picture's first: first_mb_in_slice, a one for 0."""
_BEFORE_SLICES = frozenset({6, 7, 8, 9, *range(14, 19)})
"""SEI, parameter sets, delimiter and reserved types, of which the first behind a slice begins the next picture."""
_STAP_A, _FU_A = 24, 28


def vp8_flags(payload: bytes) -> Flags:
    """Of a VP8 payload, which begins with the payload descriptor."""
    if not payload:
        return _NOTHING
    is_first_partition = payload[0] & 0x07 == 0
    starts = bool(payload[0] & 0x10) and is_first_partition
    header = _after_descriptor(payload)
    is_key = starts and header < len(payload) and payload[header] & 0x01 == 0
    return Flags(starts=starts, ends=True, is_key=is_key)


def _after_descriptor(payload: bytes) -> int:
    """Where the VP8 data begins; beyond the payload when the descriptor is cut short."""
    if not payload[0] & 0x80:
        return 1
    if len(payload) < 2:
        return 2
    has_picture_id, has_tl0, has_tid_or_key = (payload[1] & mask for mask in (0x80, 0x40, 0x30))
    at = 2
    if has_picture_id:
        at += 2 if at < len(payload) and payload[at] & 0x80 else 1
    return at + bool(has_tl0) + bool(has_tid_or_key)


def vp8_size(frame: bytes) -> tuple[int, int] | None:
    """Width and height that a whole VP8 frame tells, which key frames do (RFC 6386, 9.1); None of any other."""
    if len(frame) < 10 or frame[0] & 0x01 or frame[3:6] != b"\x9d\x01\x2a":
        return None
    return int.from_bytes(frame[6:8], "little") & 0x3FFF, int.from_bytes(frame[8:10], "little") & 0x3FFF


def h264_flags(payload: bytes) -> Flags:
    """Of an H.264 payload: a single unit, an aggregate (STAP-A) or a fragment (FU-A)."""
    if not payload:
        return _NOTHING
    kind = payload[0] & 0x1F
    if kind == _STAP_A:
        units = _aggregated(payload)
        is_key = any(unit[0] & 0x1F == _IDR_SLICE for unit in units)
        return Flags(starts=bool(units) and _begins_picture(units[0]), ends=True, is_key=is_key)
    if kind == _FU_A:
        if len(payload) < 2:
            return _NOTHING
        is_first, is_last, kind = payload[1] & 0x80, payload[1] & 0x40, payload[1] & 0x1F
        # The fragment's header is the unit's, so the slice header follows it as it does in a whole unit.
        return Flags(
            starts=bool(is_first) and _begins_picture(payload[1:]), ends=bool(is_last), is_key=kind == _IDR_SLICE
        )
    return Flags(starts=_begins_picture(payload), ends=True, is_key=kind == _IDR_SLICE)


def _begins_picture(unit: bytes) -> bool:
    kind = unit[0] & 0x1F
    return kind in _BEFORE_SLICES or (kind in _SLICES and len(unit) > 1 and bool(unit[1] & 0x80))


def _aggregated(payload: bytes) -> list[bytes]:
    units = []
    at = 1
    while at + 2 < len(payload):
        size = int.from_bytes(payload[at : at + 2], "big")
        if size == 0:
            break
        units.append(payload[at + 2 : at + 2 + size])
        at += 2 + size
    return units

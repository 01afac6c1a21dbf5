"""Flags of RTP payloads, from bytes laid out as RFC 7741 and RFC 6184 draw them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vision_bench.live.payloads import Flags, h264_flags, vp8_flags, vp8_size

KEY, INTER = b"\x10\x02\x00\x9d\x01\x2a", b"\x11\x02\x00"  # VP8 frame headers: the lowest bit says inter

VP8 = [
    ("key frame, no extension", b"\x10" + KEY, Flags(True, True, True)),
    ("inter frame, no extension", b"\x10" + INTER, Flags(True, True, False)),
    ("later packet of a partition", b"\x00" + KEY, Flags(False, True, False)),
    ("start of the second partition", b"\x11" + KEY, Flags(False, True, False)),
    ("non-reference bit set", b"\x30" + INTER, Flags(True, True, False)),
    ("7-bit picture id", b"\x90\x80\x7f" + KEY, Flags(True, True, True)),
    ("15-bit picture id", b"\x90\x80\x81\x00" + KEY, Flags(True, True, True)),
    ("15-bit picture id, inter", b"\x90\x80\x80\x02" + INTER, Flags(True, True, False)),
    ("picture id, TL0PICIDX, TID and KEYIDX", b"\x90\xf0\x81\x01\x07\x21" + KEY, Flags(True, True, True)),
    ("TID alone", b"\x90\x20\x41" + INTER, Flags(True, True, False)),
    ("KEYIDX alone", b"\x90\x10\x01" + KEY, Flags(True, True, True)),
    ("cut in the extension", b"\x90", Flags(True, True, False)),
    ("cut behind the descriptor", b"\x90\x80\x7f", Flags(True, True, False)),
    ("empty", b"", Flags(False, True, False)),
]

FIRST_MB, LATER_MB = b"\x88\x84", b"\x40\x84"  # slice headers: ue(v) of 0 is a one, of 1 begins with a zero
SPS, PPS, IDR, SLICE = b"\x67\x42\xc0", b"\x68\xce", b"\x65" + FIRST_MB, b"\x41" + FIRST_MB


def aggregate(*units: bytes) -> bytes:
    return b"\x78" + b"".join(len(unit).to_bytes(2, "big") + unit for unit in units)


H264 = [
    ("IDR slice, the first", IDR, Flags(True, True, True)),
    ("IDR slice, a later one", b"\x65" + LATER_MB, Flags(False, True, True)),
    ("slice, the first", SLICE, Flags(True, True, False)),
    ("slice, a later one", b"\x41" + LATER_MB, Flags(False, True, False)),
    ("data partition A, the first", b"\x42" + FIRST_MB, Flags(True, True, False)),
    ("data partition B", b"\x43" + FIRST_MB, Flags(False, True, False)),
    ("sequence parameter set", SPS, Flags(True, True, False)),
    ("picture parameter set", PPS, Flags(True, True, False)),
    ("supplemental information", b"\x06\x05", Flags(True, True, False)),
    ("access unit delimiter", b"\x09\x10", Flags(True, True, False)),
    ("end of sequence", b"\x0a", Flags(False, True, False)),
    ("filler", b"\x0c\xff", Flags(False, True, False)),
    ("aggregate of parameter sets and an IDR slice", aggregate(SPS, PPS, IDR), Flags(True, True, True)),
    ("aggregate of slices", aggregate(SLICE, b"\x41" + LATER_MB), Flags(True, True, False)),
    ("aggregate of later slices", aggregate(b"\x41" + LATER_MB), Flags(False, True, False)),
    ("aggregate of nothing", b"\x78", Flags(False, True, False)),
    ("aggregate with an empty unit", b"\x78\x00\x00\x65\x88", Flags(False, True, False)),
    ("aggregate cut in a length", b"\x78\x00", Flags(False, True, False)),
    ("aggregate cut in a unit", b"\x78\x00\x09\x67", Flags(True, True, False)),
    ("first fragment of an IDR slice", b"\x7c\x85" + FIRST_MB, Flags(True, False, True)),
    ("first fragment of a later slice", b"\x5c\x81" + LATER_MB, Flags(False, False, False)),
    ("fragment in the middle", b"\x7c\x05" + FIRST_MB, Flags(False, False, True)),
    ("last fragment", b"\x5c\x41" + FIRST_MB, Flags(False, True, False)),
    ("fragment cut behind its indicator", b"\x7c", Flags(False, True, False)),
    ("fragment cut behind its header", b"\x7c\x85", Flags(False, False, True)),
    ("slice cut behind its header", b"\x65", Flags(False, True, True)),
    ("a type that nobody sends", b"\x7f\x80", Flags(False, True, False)),
    ("empty", b"", Flags(False, True, False)),
]


@pytest.mark.parametrize(("fact", "payload", "flags"), VP8, ids=[row[0] for row in VP8])
def test_vp8(fact: str, payload: bytes, flags: Flags) -> None:
    """A frame begins with the first packet of partition 0; it is a key frame by the first bit of its header."""
    assert vp8_flags(payload) == flags


@pytest.mark.parametrize(("fact", "payload", "flags"), H264, ids=[row[0] for row in H264])
def test_h264(fact: str, payload: bytes, flags: Flags) -> None:
    """A picture begins with what comes before its slices or with its first slice; a fragment ends with its end bit."""
    assert h264_flags(payload) == flags


@given(st.binary(max_size=40))
def test_any_payload_is_survived(payload: bytes) -> None:
    """Bytes from the network are read as far as they go."""
    for flags in (vp8_flags(payload), h264_flags(payload)):
        assert isinstance(flags, Flags)


def test_a_vp8_key_frame_tells_its_size() -> None:
    """Fourteen bits each, without the scale; other frames, and what is too short or no VP8, tell none."""
    key = bytes.fromhex("b002009d012a40c03040ff")
    assert vp8_size(key) == (64, 48)
    for other in (b"", key[:9], b"\x01" + key[1:], key.replace(b"\x9d", b"\x00")):
        assert vp8_size(other) is None

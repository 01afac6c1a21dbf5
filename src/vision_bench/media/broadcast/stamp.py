"""The frame stamp: genre and frame number as 34 black or white blocks, readable after a low-rate encode.

Two sync bits (1, 0), 3 bits of genre number, 22 bits of frame number, 7 check bits. Right of the blocks, after a gap of
two, a lamp two blocks wide lights with each flash, so that the start of a flash is known to the frame.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GENRE_BITS, FRAME_BITS, CHECK_BITS = 3, 22, 7
SYNC = (1, 0)
BITS = len(SYNC) + GENRE_BITS + FRAME_BITS + CHECK_BITS
CHECK_POLYNOMIAL = 0x09  # x^7 + x^3 + 1, as SD cards use

DARK, LIGHT, MIDDLE = 16, 235, 126


class StampBox(NamedTuple):
    """Where the stamp lies: side of a block, left and top edge, in pixels."""

    block: int
    x: int
    y: int

    @property
    def lamp_x(self) -> int:
        return self.x + (BITS + 2) * self.block

    @property
    def right(self) -> int:
        return self.lamp_x + 3 * self.block


class Stamp(NamedTuple):
    """What a stamp says."""

    genre_number: int
    frame: int


def stamp_box(height: int) -> StampBox:
    """The stamp's place at the bottom left of a picture of that height; on the codec's 8-pixel grid."""
    block = 16 if height >= 720 else 8
    return StampBox(block, 16, height // 8 * 8 - 2 * block)


def stamp_bits(stamp: Stamp) -> list[int]:
    """The 34 bits, first block first."""
    value = stamp.genre_number << FRAME_BITS | stamp.frame
    payload = _bits(value, GENRE_BITS + FRAME_BITS)
    return [*SYNC, *payload, *_bits(_check(payload), CHECK_BITS)]


def _bits(value: int, width: int) -> list[int]:
    return [value >> shift & 1 for shift in reversed(range(width))]


def _check(bits: list[int]) -> int:
    remainder = 0
    for bit in bits:
        carry = remainder >> (CHECK_BITS - 1) ^ bit
        remainder = (remainder << 1 & 0x7F) ^ (CHECK_POLYNOMIAL if carry else 0)
    return remainder


def draw_stamp(luma: NDArray[np.uint8], stamp: Stamp, *, lit: bool) -> None:
    """Write the stamp into ``luma`` (H, W); ``lit`` lights the lamp."""
    block, x, y = box = stamp_box(luma.shape[0])
    rows = slice(y, y + block)
    luma[rows, x - block : box.right] = DARK
    levels = np.where(np.array(stamp_bits(stamp)), LIGHT, DARK).astype(np.uint8)
    luma[rows, x : x + BITS * block] = np.repeat(levels, block)
    if lit:
        luma[rows, box.lamp_x : box.lamp_x + 2 * block] = LIGHT


def read_stamp(luma: NDArray[np.uint8]) -> Stamp | None:
    """What the stamp in ``luma`` (H, W) says, or None where there is none or its check bits disagree."""
    block, x, y = stamp_box(luma.shape[0])
    inset = block // 4
    if luma.shape[1] < x + BITS * block:
        return None
    strip = luma[y + inset : y + block - inset, x : x + BITS * block].reshape(-1, BITS, block)
    means = strip[:, :, inset : block - inset].mean(axis=(0, 2))
    bits = [int(level > MIDDLE) for level in means]
    value = int("".join(map(str, bits[len(SYNC) : -CHECK_BITS])), 2)
    stamp = Stamp(value >> FRAME_BITS, value & (1 << FRAME_BITS) - 1)
    return stamp if bits == stamp_bits(stamp) else None


def lamp_is_lit(luma: NDArray[np.uint8]) -> bool:
    """Whether the lamp beside the stamp is lit in ``luma`` (H, W)."""
    box = stamp_box(luma.shape[0])
    lamp = luma[box.y : box.y + box.block, box.lamp_x : box.lamp_x + 2 * box.block]
    return bool(lamp.size) and float(lamp.mean()) > MIDDLE

"""Marks of a reference server in the pixels: black and white cells along the top, drawn and read back.

The cells survive what H.264 does to them at any quality that somebody would watch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vision_bench.wire.realtime.marks import BITS, Marks, from_bits, to_bits

CELL = 8
"""Side of a cell in pixels: half a macroblock, so that none crosses the border of one."""
_BLACK, _WHITE = 16, 235
_MARGIN = 2
"""Pixels at a cell's edge that are not looked at: coding blurs them."""


def strip_rows(width: int) -> int:
    """Pixel rows from the top that the marks take in a picture ``width`` pixels wide."""
    return -(-BITS // (width // CELL)) * CELL


def has_room(width: int, height: int) -> bool:
    """Whether a picture of that size can hold the marks and more than half of it is left."""
    return width >= CELL and 2 * strip_rows(width) <= height


def draw_marks(luma: NDArray[np.uint8], marks: Marks) -> None:
    """Write ``marks`` into (H, W) luma, in place, from the top left along the rows of cells; see `has_room`."""
    columns = luma.shape[1] // CELL
    rows = strip_rows(luma.shape[1]) // CELL
    cells = np.full(rows * columns, _BLACK, np.uint8)
    cells[:BITS][np.array(to_bits(marks))] = _WHITE
    drawn = cells.reshape(rows, columns).repeat(CELL, axis=0).repeat(CELL, axis=1)
    luma[: rows * CELL] = _BLACK
    luma[: rows * CELL, : columns * CELL] = drawn


def read_marks(luma: NDArray[np.uint8]) -> Marks | None:
    """The marks in (H, W) luma (or grey) of the size in which it was made; None when there are none to be read."""
    height, width = luma.shape
    if not has_room(width, height):
        return None
    columns = width // CELL
    rows = strip_rows(width) // CELL
    cells = luma[: rows * CELL, : columns * CELL].reshape(rows, CELL, columns, CELL)
    means = cells[:, _MARGIN:-_MARGIN, :, _MARGIN:-_MARGIN].mean(axis=(1, 3)).reshape(-1)[:BITS]
    return from_bits([bool(mean > (_BLACK + _WHITE) / 2) for mean in means])

"""The frame stamp."""

from __future__ import annotations

import numpy as np
import pytest

from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.broadcast.stamp import Stamp, draw_stamp, lamp_is_lit, read_stamp, stamp_bits, stamp_box


@pytest.mark.parametrize("genre", GENRES.values(), ids=GENRES)
def test_the_stamp_fits_every_genre(genre) -> None:
    """The strip, lamp included, lies inside the picture and on even pixels."""
    box = stamp_box(genre.height)
    assert box.right <= genre.width
    assert box.y + box.block <= genre.height
    assert box.x % 2 == box.y % 2 == 0


def test_there_are_34_bits_and_they_start_with_the_sync() -> None:
    """2 sync, 3 genre, 22 frame and 7 check bits."""
    bits = stamp_bits(Stamp(5, 17983))
    assert len(bits) == 34
    assert bits[:5] == [1, 0, 1, 0, 1]


def test_any_single_wrong_block_is_noticed() -> None:
    """A stamp with one block turned over is None, never another frame's number."""
    luma = np.full((360, 640), 90, np.uint8)
    draw_stamp(luma, Stamp(5, 123456), lit=False)
    block, x, y = stamp_box(360)
    for bit in range(34):
        spoilt = luma.copy()
        patch = spoilt[y : y + block, x + bit * block : x + (bit + 1) * block]
        patch[:] = 251 - patch
        assert read_stamp(spoilt) is None


def test_a_picture_without_stamp_reads_as_none() -> None:
    """Black, white and a picture too narrow for the strip hold no stamp."""
    assert read_stamp(np.zeros((360, 640), np.uint8)) is None
    assert read_stamp(np.full((360, 640), 255, np.uint8)) is None
    assert read_stamp(np.zeros((360, 100), np.uint8)) is None
    assert not lamp_is_lit(np.zeros((360, 100), np.uint8))


def test_the_lamp_shows_beside_the_stamp() -> None:
    """It is lit with a flash and dark without, and changes no bit."""
    luma = np.full((480, 720), 90, np.uint8)
    draw_stamp(luma, Stamp(2, 7), lit=True)
    assert lamp_is_lit(luma)
    assert read_stamp(luma) == Stamp(2, 7)
    draw_stamp(luma, Stamp(2, 7), lit=False)
    assert not lamp_is_lit(luma)

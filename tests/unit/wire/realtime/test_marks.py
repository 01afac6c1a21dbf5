"""wire.realtime.marks: what is written into a picture comes back, or nothing does."""

from __future__ import annotations

import pytest

from vision_bench.wire.realtime.marks import BITS, Marks, event_digest, from_bits, marks_of, to_bits


@pytest.mark.parametrize(
    "marks",
    [
        Marks(0, 0),
        Marks(141, 12, (event_digest("fwd-1"),)),
        Marks(2**24 - 1, 2**16 - 1, (event_digest("a"), event_digest("비"))),
    ],
)
def test_bits_hold_the_marks(marks: Marks) -> None:
    """Numbers and digests come back as they were."""
    assert from_bits(to_bits(marks)) == marks


def test_any_bit_misread_is_noticed() -> None:
    """One wrong bit anywhere, and nothing is read rather than something wrong."""
    bits = to_bits(marks_of(77, 6, ["a"]))
    for place in range(BITS):
        assert from_bits([bit != (place == index) for index, bit in enumerate(bits)]) is None


@pytest.mark.parametrize("bit", [False, True])
def test_an_even_picture_holds_no_marks(bit: bool) -> None:
    """All black and all white are no marks; nor is another number of bits."""
    assert from_bits([bit] * BITS) is None
    assert from_bits([bit] * (BITS - 1)) is None


def test_two_events_fit_and_more_are_left_out() -> None:
    """A prompt and a camera command can be at work at once; a third id is not drawn."""
    assert marks_of(1, 0, ["a", "b", "c"]).event_digests == (event_digest("a"), event_digest("b"))


def test_every_id_has_a_digest_that_is_not_none() -> None:
    """Also an id that is no valid text: half of a surrogate pair, as JSON can name it."""
    assert event_digest("\ud800") != 0
    assert event_digest("") == 1  # its CRC is 0, which stands for no event

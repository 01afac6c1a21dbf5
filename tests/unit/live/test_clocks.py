"""Readings of several clocks, and what is said of the time between them."""

from __future__ import annotations

import pytest

from vision_bench.live.clocks import Elapsed, Offset, Stamp, elapsed, joined, offset_from_exchange


def g(ns: int) -> Stamp:
    return Stamp("gateway", ns)


def p(ns: int) -> Stamp:
    return Stamp("publisher", ns)


OFFSET = Offset("publisher", "gateway", offset_ns=1000, bound_ns=30)

CASES = [
    ("one clock is exact", g(5), g(12), (), Elapsed(7, 7)),
    ("no time at all", g(5), g(5), (), Elapsed(0, 0)),
    ("backwards on one clock", g(5), g(4), (), Elapsed(None, None, "out_of_order")),
    ("nothing joins the clocks", p(5), g(4), (), Elapsed(None, None, "no_offset")),
    ("another pair of clocks", p(5), g(4), (Offset("client", "gateway", 0, 0),), Elapsed(None, None, "no_offset")),
    ("no first reading", None, g(4), (), Elapsed(None, None, "no_stamp")),
    ("no last reading", g(4), None, (), Elapsed(None, None, "no_stamp")),
    ("a range across clocks", p(0), g(1100), (OFFSET,), Elapsed(70, 130)),
    ("the offset read backwards", g(1000), p(100), (OFFSET,), Elapsed(70, 130)),
    ("a range that begins at zero", p(0), g(1010), (OFFSET,), Elapsed(0, 40)),
    ("just possible", p(0), g(970), (OFFSET,), Elapsed(0, 0)),
    ("an offset that is wrong", p(0), g(969), (OFFSET,), Elapsed(None, None, "out_of_order")),
    ("the tighter of two", p(0), g(1100), (Offset("gateway", "publisher", -990, 200), OFFSET), Elapsed(70, 130)),
]


@pytest.mark.parametrize(("fact", "start", "end", "offsets", "expected"), CASES, ids=[case[0] for case in CASES])
def test_the_time_between_two_readings(
    fact: str, start: Stamp | None, end: Stamp | None, offsets: tuple[Offset, ...], expected: Elapsed
) -> None:
    """Exact within a clock, a range across, no number where none can be said, and never one below zero."""
    assert elapsed(start, end, offsets) == expected


def test_one_exchange_gives_an_offset_with_its_bound() -> None:
    """NTP's four stamps: 40 there, 60 back, 500 ahead; the middle is off by 10, which is within half of 100."""
    asked, heard = Stamp("client", 0), Stamp("client", 107)
    offset = offset_from_exchange(asked, g(540), g(547), heard)
    assert offset == Offset("client", "gateway", offset_ns=490, bound_ns=51)


def test_an_exchange_that_cannot_be_gives_no_offset() -> None:
    """An answer heard before it could have been made says nothing."""
    assert offset_from_exchange(Stamp("client", 0), g(10), g(90), Stamp("client", 70)) is None
    assert offset_from_exchange(Stamp("client", 0), g(90), g(10), Stamp("client", 70)) is None


def test_an_exchange_is_between_two_clocks() -> None:
    """Stamps of a third clock are a mistake of ours."""
    with pytest.raises(ValueError, match="of one clock"):
        offset_from_exchange(Stamp("client", 0), g(1), p(2), Stamp("client", 3))


def test_offsets_are_joined_over_other_clocks() -> None:
    """From the publisher to the client over the gateway: offsets and bounds add up; the tightest way wins."""
    over = (OFFSET, Offset("client", "gateway", 400, 5))
    assert joined("publisher", "client", over) == Offset("publisher", "client", 600, 35)
    assert joined("client", "publisher", over) == Offset("client", "publisher", -600, 35)
    assert joined("publisher", "client", (*over, Offset("publisher", "client", 590, 50))) == joined(
        "publisher", "client", over
    )
    assert joined("publisher", "elsewhere", over) is None
    assert joined("publisher", "client", ()) is None


def test_a_bound_is_never_negative() -> None:
    """A range whose end lies before its beginning cannot be made."""
    with pytest.raises(ValueError, match="known to -1 ns"):
        Offset("publisher", "gateway", 0, -1)

"""Readings of clocks on different machines, and what may be said of the time between two of them.

Readings are subtracted only within one clock. Between clocks there is an offset that is known up to a bound, so the
time between two readings is a range. A range is never moved to look right: one that lies below zero says that the
offset is wrong, and gives no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Problem = Literal["no_stamp", "no_offset", "out_of_order"]


@dataclass(frozen=True, slots=True)
class Stamp:
    """One reading: nanoseconds on the clock that ``clock`` names, from an origin that only that clock knows."""

    clock: str
    ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """``ahead`` shows ``offset_ns`` more than ``behind`` at the same instant, give or take ``bound_ns``.

    ``offset_ns`` may be negative; the names only say which is subtracted from which.
    """

    behind: str
    ahead: str
    offset_ns: int
    bound_ns: int

    def between(self, behind: str, ahead: str) -> Offset | None:
        """This offset read in the direction asked for; None when it is about other clocks."""
        if (behind, ahead) == (self.behind, self.ahead):
            return self
        if (behind, ahead) == (self.ahead, self.behind):
            return Offset(behind, ahead, -self.offset_ns, self.bound_ns)
        return None


@dataclass(frozen=True, slots=True)
class Elapsed:
    """How long it was between two readings: at least ``low_ns``, at most ``high_ns``; equal within one clock.

    Both are None when nothing can be said, and ``problem`` says why. Never negative.
    """

    low_ns: int | None
    high_ns: int | None
    problem: Problem | None = None


def elapsed(start: Stamp | None, end: Stamp | None, offsets: Iterable[Offset] = ()) -> Elapsed:
    """The time from ``start`` to ``end``; across clocks by the tightest of ``offsets`` that joins them."""
    if start is None or end is None:
        return Elapsed(None, None, "no_stamp")
    low_ns = high_ns = end.ns - start.ns
    if start.clock != end.clock:
        known = [offset.between(start.clock, end.clock) for offset in offsets]
        offset = tightest([offset for offset in known if offset is not None])
        if offset is None:
            return Elapsed(None, None, "no_offset")
        middle_ns = end.ns - start.ns - offset.offset_ns
        low_ns, high_ns = middle_ns - offset.bound_ns, middle_ns + offset.bound_ns
    if high_ns < 0:
        return Elapsed(None, None, "out_of_order")
    # What ends cannot end before it began: zero is a fact of time here, not a repair of the reading.
    return Elapsed(max(0, low_ns), high_ns)


def offset_from_exchange(asked: Stamp, received: Stamp, replied: Stamp, heard: Stamp) -> Offset | None:
    """The offset of the replying clock from the asking one, after one question and answer (NTP's four stamps).

    The bound is half of the time that both ways took together: the true offset lies within it however unlike the two
    ways are. Clocks that run at different speeds widen it by their drift since, which is not counted here.

    Returns:
        None for readings that cannot be: an answer that was heard sooner than it was made.
    """
    if asked.clock != heard.clock or received.clock != replied.clock:
        raise ValueError("the first and the last stamp must be of one clock, and the two between them of one")
    ways_ns = (heard.ns - asked.ns) - (replied.ns - received.ns)
    if ways_ns < 0 or replied.ns < received.ns:
        return None
    twice_ns = (received.ns - asked.ns) + (replied.ns - heard.ns)
    # Halves are rounded outwards, so that the bound holds to the nanosecond.
    return Offset(asked.clock, received.clock, twice_ns // 2, (ways_ns + 1) // 2 + 1)


def tightest(offsets: Sequence[Offset]) -> Offset | None:
    """The one with the smallest bound: the exchange that was held up least; None of none."""
    return min(offsets, key=lambda offset: offset.bound_ns, default=None)

"""Readings of clocks on different machines, and what may be said of the time between two of them.

Readings are subtracted only within one clock. Between clocks there is an offset that is known up to a bound, so the
time between two readings is a range. A range is never moved to look right: one that lies below zero says that the
offset is wrong, and gives no number.
"""

from __future__ import annotations

from collections.abc import Iterable
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

    Raises:
        ValueError: a bound below zero.
    """

    behind: str
    ahead: str
    offset_ns: int
    bound_ns: int

    def __post_init__(self) -> None:
        if self.bound_ns < 0:
            raise ValueError(f"an offset known to {self.bound_ns} ns; the bound is 0 or more")

    def reversed(self) -> Offset:
        """The same, told the other way round."""
        return Offset(self.ahead, self.behind, -self.offset_ns, self.bound_ns)


@dataclass(frozen=True, slots=True)
class Elapsed:
    """How long it was between two readings: at least ``low_ns``, at most ``high_ns``; equal within one clock.

    Both are None when nothing can be said, and ``problem`` says why. Never negative.
    """

    low_ns: int | None
    high_ns: int | None
    problem: Problem | None = None


def elapsed(start: Stamp | None, end: Stamp | None, offsets: Iterable[Offset] = ()) -> Elapsed:
    """The time from ``start`` to ``end``; across clocks by the tightest way on which ``offsets`` join them."""
    if start is None or end is None:
        return Elapsed(None, None, "no_stamp")
    low_ns = high_ns = end.ns - start.ns
    if start.clock != end.clock:
        offset = joined(start.clock, end.clock, offsets)
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


def joined(behind: str, ahead: str, offsets: Iterable[Offset]) -> Offset | None:
    """The offset between two clocks with the smallest bound, over others where need be: bounds add up on the way."""
    each_way = [way for offset in offsets for way in (offset, offset.reversed())]
    best = {behind: Offset(behind, behind, 0, 0)}
    for _ in each_way:  # no shortest way has more steps
        for way in each_way:
            so_far = best.get(way.behind)
            if so_far is None:
                continue
            bound_ns = so_far.bound_ns + way.bound_ns
            if way.ahead not in best or bound_ns < best[way.ahead].bound_ns:
                best[way.ahead] = Offset(behind, way.ahead, so_far.offset_ns + way.offset_ns, bound_ns)
    return best.get(ahead)

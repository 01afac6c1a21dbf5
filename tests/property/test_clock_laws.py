"""Laws of time between clocks: the truth lies in what is said, and nothing said is negative."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.live.clocks import Offset, Stamp, elapsed, offset_from_exchange

NS = st.integers(-(10**15), 10**15)
DELAY_NS = st.integers(0, 10**10)
CLOCKS = st.sampled_from(["publisher", "gateway", "client"])
STAMPS = st.none() | st.builds(Stamp, CLOCKS, NS)
OFFSETS = st.lists(st.builds(Offset, CLOCKS, CLOCKS, NS, DELAY_NS), max_size=3)


@given(STAMPS, STAMPS, OFFSETS)
def test_no_time_is_ever_negative(start: Stamp | None, end: Stamp | None, offsets: list[Offset]) -> None:
    """Whatever the readings and the offsets: a range from zero up, or no number and a reason."""
    found = elapsed(start, end, offsets)
    if found.problem:
        assert found.low_ns is None and found.high_ns is None
    else:
        assert found.low_ns is not None and found.high_ns is not None and 0 <= found.low_ns <= found.high_ns


@given(NS, st.lists(st.tuples(DELAY_NS, DELAY_NS, DELAY_NS), min_size=1, max_size=4), NS, DELAY_NS)
def test_the_true_time_lies_in_the_range(
    ahead_ns: int, exchanges: list[tuple[int, int, int]], began_ns: int, took_ns: int
) -> None:
    """However unlike the two ways of an exchange, the range it gives holds what really passed."""
    offsets = []
    at_ns = 0
    for there_ns, thinking_ns, back_ns in exchanges:
        received_ns = at_ns + there_ns
        replied_ns = received_ns + thinking_ns
        offset = offset_from_exchange(
            Stamp("client", at_ns),
            Stamp("gateway", received_ns + ahead_ns),
            Stamp("gateway", replied_ns + ahead_ns),
            Stamp("client", replied_ns + back_ns),
        )
        assert offset is not None and abs(offset.offset_ns - ahead_ns) <= offset.bound_ns
        offsets.append(offset)
        at_ns = replied_ns + back_ns
    up = elapsed(Stamp("client", began_ns), Stamp("gateway", began_ns + took_ns + ahead_ns), offsets)
    down = elapsed(Stamp("gateway", began_ns + ahead_ns), Stamp("client", began_ns + took_ns), offsets)
    for found in (up, down):
        assert found.low_ns is not None and found.high_ns is not None
        assert found.low_ns <= took_ns <= found.high_ns


@given(st.lists(NS, min_size=3, max_size=3), st.data(), NS, DELAY_NS)
def test_the_truth_lies_in_a_range_over_several_clocks(
    shifts_ns: list[int], data: st.DataObject, began_ns: int, took_ns: int
) -> None:
    """Each offset known to its bound, in any direction, some twice: what really passed is in the range."""
    names = ["publisher", "gateway", "client"]
    pairs = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from([0, 1, 2])), min_size=1, max_size=5)
    offsets = []
    for behind, ahead in data.draw(pairs):
        bound_ns = data.draw(DELAY_NS)
        wrong_ns = data.draw(st.integers(-bound_ns, bound_ns)) if behind != ahead else 0
        offsets.append(Offset(names[behind], names[ahead], shifts_ns[ahead] - shifts_ns[behind] + wrong_ns, bound_ns))
    start, end = Stamp("publisher", began_ns + shifts_ns[0]), Stamp("client", began_ns + took_ns + shifts_ns[2])
    found = elapsed(start, end, offsets)
    assert found.problem in (None, "no_offset")
    if found.low_ns is not None and found.high_ns is not None:
        assert found.low_ns <= took_ns <= found.high_ns

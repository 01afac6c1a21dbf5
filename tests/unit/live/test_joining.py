"""live.joining: offsets learnt from questions."""

from __future__ import annotations

from vision_bench.live.clocks import Stamp
from vision_bench.live.joining import DRIFT, ServerClock

MS = 1_000_000


def exchange(
    server: ServerClock, *, sent_ms: float, ways_ms: tuple[float, float], work_ms: float, ahead_ms: float
) -> float:
    """One question to a server whose clock is ``ahead_ms`` ahead; gives when its answer was heard, ms."""
    received_ms = sent_ms + ways_ms[0]
    heard_ms = received_ms + work_ms + ways_ms[1]
    received, replied = (Stamp("server", round((at + ahead_ms) * MS)) for at in (received_ms, received_ms + work_ms))
    server.exchange(round(sent_ms * MS), received, replied, round(heard_ms * MS))
    return heard_ms


def test_the_tightest_exchange_is_kept_and_ages() -> None:
    """A slow question does not spoil what a quick one told; the bound grows with time until a new one is tighter."""
    server = ServerClock("client")
    at = exchange(server, sent_ms=0, ways_ms=(1, 3), work_ms=500, ahead_ms=1000)
    first = server.offset("server", now_ns=round(at * MS))
    assert first is not None
    assert abs(first.offset_ns - 1000 * MS) <= first.bound_ns
    assert first.bound_ns <= 2 * MS + 2
    exchange(server, sent_ms=at, ways_ms=(50, 90), work_ms=5, ahead_ms=1000)
    later = server.offset("server", now_ns=round((at + 10_000) * MS))
    assert later is not None
    assert later.offset_ns == first.offset_ns
    assert later.bound_ns == first.bound_ns + round(10_000 * MS * DRIFT)
    exchange(server, sent_ms=at + 20_000, ways_ms=(2, 2), work_ms=5, ahead_ms=1001)
    renewed = server.offset("server", now_ns=round((at + 20_010) * MS))
    assert renewed is not None
    assert renewed.bound_ns < later.bound_ns
    assert abs(renewed.offset_ns - 1001 * MS) <= renewed.bound_ns


def test_a_server_that_was_started_anew_has_another_clock() -> None:
    """What was known of the old one is not used for it."""
    server = ServerClock("client")
    exchange(server, sent_ms=0, ways_ms=(1, 1), work_ms=1, ahead_ms=0)
    assert server.offset("another", now_ns=0) is None
    assert server.offset("server", now_ns=0) is not None


def test_an_exchange_that_cannot_be_teaches_nothing() -> None:
    """An answer heard before it was made, and readings of two servers."""
    server = ServerClock("client")
    exchange(server, sent_ms=0, ways_ms=(1, -5), work_ms=1, ahead_ms=0)
    server.exchange(0, Stamp("one", 1), Stamp("two", 2), 9)
    assert server.offset("server", now_ns=0) is None
    assert server.offset("one", now_ns=0) is None

"""client.live_half: offsets learnt from questions, and the readings of both sides as one receipt."""

from __future__ import annotations

from typing import Any

from vision_bench.client.live_half import DRIFT, ClientHalf, ServerClock
from vision_bench.live.clocks import Stamp
from vision_bench.live.receipt import stage_times

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


def half_of(told: Any, *, first_ms: int | None = 70, read_ms: int = 100) -> Any:
    """The receipt of a question decided at 0, sent at 10, read at ``read_ms``."""
    times = iter([0, 10 * MS, 200 * MS, 201 * MS])
    half = ClientHalf(lambda: next(times), "client")
    half.sent()
    half.first_output_ns = None if first_ms is None else first_ms * MS
    for name, at_ms in (("read", read_ms), ("parsed", read_ms + 1), ("validated", read_ms + 3)):
        half.stamp(name, at_ms * MS)
    half.stamp("nothing", None)
    return half.whole(told, ServerClock("client"))


def told(**readings_ms: float) -> dict[str, Any]:
    return {"stamps": {name: {"clock": "server", "ns": round(ms * MS)} for name, ms in readings_ms.items()}}


def test_both_halves_make_one_receipt() -> None:
    """Stages of the client are exact, those between the clocks are ranges that hold the truth (5 s between them), and
    the time of the first try is within the request's."""
    receipt = half_of(told(asked=5015, first_token=5068, final_token=5095))
    stages = {one.stage: one for one in stage_times(receipt)}
    assert (stages["parse"].ms, stages["validation"].ms) == (1, 2)
    for name, true_ms in (("request", 15), ("sse_transport", 5)):
        one = stages[name]
        assert one.ms is None
        assert one.low_ms is not None and one.high_ms is not None
        assert one.low_ms <= true_ms <= one.high_ms
        assert one.high_ms - one.low_ms < 8


def test_without_output_the_last_reading_tells_the_offset() -> None:
    """An answer that is whole at once has no first output of its own."""
    receipt = half_of(told(asked=5015, final_token=5095), first_ms=None)
    assert len(receipt.offsets) == 1


def test_a_receipt_that_cannot_be_read_is_none() -> None:
    """Another server's object of that name, or none at all."""
    assert half_of(None) is None
    assert half_of({"stamps": "x"}) is None

"""client.live_half: the readings of both sides as one receipt."""

from __future__ import annotations

from typing import Any

from vision_bench.client.live_half import ClientHalf
from vision_bench.live.joining import ServerClock
from vision_bench.live.receipt import stage_times

MS = 1_000_000


def half_of(told: Any, *, first_ms: int | None = 70, read_ms: int = 100) -> Any:
    """The receipt of a question decided at 0, sent at 10, read at ``read_ms``."""
    times = iter([0, 10 * MS, 200 * MS, 201 * MS])
    half = ClientHalf(lambda: next(times))
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

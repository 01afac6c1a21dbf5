"""bench.chat.own_error: reported beside true."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.bench.chat.own_error import own_error
from vision_bench.bench.chat.record import ChatRecord

MS = 1_000_000


def record(number: int, *, ttft_ms: float, outcome: str = "ok", tokens: int = 3) -> ChatRecord:
    """Three events, 10 ms apart."""
    start = number * 1000 * MS
    made = ChatRecord(step=1, index=number, ordinal=number, due_ns=start, request_id=f"r{number}", outcome=outcome)
    first = start + int(ttft_ms * MS)
    made.hdr_ns, made.k_ns, made.completion_tokens = start, [first, first + 10 * MS, first + 20 * MS], tokens
    return made


def line(number: int, *, ttft_ms: float, **more: Any) -> dict[str, Any]:
    told = {"request_id": f"r{number}", "ttft_ms": ttft_ms, "tpot_ms": 9.0, "e2e_ms": ttft_ms + 18, "tokens": 3}
    return told | more


def test_the_error_is_the_distance_of_the_percentiles() -> None:
    """52 reported and 50 true are +2; 10 a token against 9 is +1; what was true stands beside it."""
    told = own_error([record(n, ttft_ms=52) for n in range(10)], [line(n, ttft_ms=50) for n in range(10)])
    assert (told["requests"], told["ok"], told["seen_by_server"], told["tokens_agree"]) == (10, 10, 10, True)
    assert (told["ttft_ms"]["p50"], told["ttft_ms"]["true_p50"]) == (2, 50)
    assert told["tpot_ms"]["p50"] == pytest.approx(1.0) and told["e2e_ms"]["p50"] == pytest.approx(4.0)


def test_a_percentile_that_the_sample_cannot_carry_is_not_given() -> None:
    """Ten answers have a median and no p99; none have nothing."""
    told = own_error([record(n, ttft_ms=52) for n in range(10)], [line(n, ttft_ms=50) for n in range(10)])
    assert told["ttft_ms"]["p99"] is None and told["ttft_ms"]["count"] == 10
    assert own_error([], [])["ttft_ms"] == {
        "count": 0, "p50": None, "true_p50": None, "p95": None, "true_p95": None, "p99": None, "true_p99": None,
    }  # fmt: skip


def test_what_failed_or_is_unknown_to_the_server_is_counted_and_in_no_error() -> None:
    """One failed, one the server never saw, one whose tokens differ."""
    records = [record(0, ttft_ms=52), record(1, ttft_ms=900, outcome="truncated"), record(2, ttft_ms=900)]
    told = own_error(records, [line(0, ttft_ms=50), line(1, ttft_ms=50)])
    assert (told["requests"], told["ok"], told["seen_by_server"], told["ttft_ms"]["count"]) == (3, 2, 2, 1)
    assert not own_error([record(0, ttft_ms=52, tokens=4)], [line(0, ttft_ms=50)])["tokens_agree"]

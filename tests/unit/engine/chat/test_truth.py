"""What an engine says about the requests that it served."""

from __future__ import annotations

import json

from vision_bench.engine.chat.truth import Timeline, TruthLog

MS = 1_000_000


def timeline(**fields: int) -> Timeline:
    return Timeline("r", "qwen", True, 0, **fields)


def test_spans_are_told_apart() -> None:
    """Preprocessing 10 ms, queue 5, prefill 20, three tokens 4 ms apart."""
    record = timeline(prepared_ns=10 * MS, scheduled_ns=15 * MS)
    for at in (35, 39, 43):
        record.token(at * MS)
    assert (record.preprocess_ms, record.queue_ms, record.prefill_ms, record.decode_ms) == (10, 5, 20, 8)
    assert (record.ttft_ms, record.tpot_ms, record.e2e_ms) == (35, 4, 43)


def test_one_token_has_no_time_per_token() -> None:
    """No gap is None, not 0."""
    record = timeline()
    record.token(5)
    assert record.tpot_ms is None


def test_what_was_not_reached_is_null() -> None:
    """A refused request has no token."""
    log = TruthLog(10)
    log.add(timeline())
    (line,) = log.lines()
    assert json.loads(line)["ttft_ms"] is None


def test_log_is_bounded_and_keeps_the_newest() -> None:
    """Ten thousand requests do not fill memory."""
    log = TruthLog(2)
    for number in range(5):
        log.add(Timeline(f"r{number}", "qwen", False, 0))
    assert [json.loads(line)["request_id"] for line in log.lines()] == ["r3", "r4"]

"""A step's sessions as its summary, and the published report over the same sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.bench.realtime.made_steps import BASIS, session, step_summary

from vision_bench.bench.realtime.metrics import compute_metrics
from vision_bench.bench.realtime.published import published_report
from vision_bench.bench.realtime.record import SessionRecord, observation
from vision_bench.bench.realtime.records import NS_PER_MS
from vision_bench.wire.realtime.truth import ChunkTruth


@pytest.mark.parametrize(
    ("records", "facts", "verdict", "reason"),
    [
        ([session()], {}, "STABLE", "a steady chunk takes 700 ms on average (count 2) and plays for 750 ms at 16 fps"),
        ([session(gap_ms=800)], {}, "BEHIND", "a steady chunk takes 800 ms on average (count 2) and plays for 750 ms"),
        ([session(chunks=7)], {}, "UNDETERMINED", "no steady interval"),
        ([session(), session(1, outcome="late_error")], {}, "UNDETERMINED", "1 of 2 sessions failed"),
        ([session()], {"due": 3}, "UNDETERMINED", "2 of 3 sessions failed"),
        ([session()], {"is_complete": False}, "UNDETERMINED", "cut off"),
        ([session()], {"loop_lag_p99_ms": 13.9}, "STABLE", "700 ms"),
        ([session()], {"loop_lag_p99_ms": 14.1}, "CLIENT-LIMITED", "14.1 ms late"),
        ([session()], {"cpu_share": 0.9}, "CLIENT-LIMITED", "90%"),
        ([], {}, "UNDETERMINED", "0 of 0 sessions"),
    ],
)
def test_one_word_for_a_step(records: list[SessionRecord], facts: Any, verdict: str, reason: str) -> None:
    """Cut off, the client's own limit, failures, nothing steady; then whether the mean interval keeps up."""
    found = step_summary(*records, **facts)
    assert (found["verdict"], reason in found["verdict_reason"]) == (verdict, True)


def test_warm_up_is_of_another_step_and_only_counted() -> None:
    """A record of the step before is a warm-up."""
    found = step_summary(session(step=1, gap_ms=5000), session(start_ms=90_000))
    assert (found["sessions"]["warmup"], found["requests"]["due"], found["startup"]["ttfc_ms"]["count"]) == (1, 1, 1)
    assert found["verdict"] == "STABLE"


def test_failures_and_oddities_are_counted_by_name() -> None:
    """Beside the sessions that were whole."""
    odd = {"null_index": 2, "no_close_frame": 1}
    found = step_summary(
        session(oddities=odd), session(1, oddities=odd), session(2, outcome="late_error", detail="400", chunks=0)
    )
    assert found["oddities"] == {"no_close_frame": 2, "null_index": 4}
    assert found["requests"]["outcomes"] == {"late_error": 1, "ok": 2}
    assert found["failures"] == [{"outcome": "late_error", "detail": "400", "count": 1}]
    assert found["startup"]["ttfc_ms"]["mean"] is None


def test_the_session_after_a_drop_is_judged_against_the_undisturbed() -> None:
    """The first to start after the connection was gone; one that had started before it is not it."""
    dropped = session(1, outcome="connection_lost", done_ns=None, ended_ns=20_000 * NS_PER_MS, start_ms=10_000)
    found = step_summary(session(), dropped, session(2, start_ms=15_000), session(3, start_ms=30_000, gap_ms=600))
    (recovery,) = found["recovery"]
    assert (recovery["dropped"], recovery["next"], recovery["next_ttfc_ms"]) == (1, 3, 1000)
    assert recovery["drop_to_first_chunk_ms"] == 11_000


def test_the_clients_error_is_stated_where_the_server_declares() -> None:
    """Two ms late at every chunk and one more at the last: TTFC 2 ms off, intervals 0 but for one."""
    record = session(chunks=8)
    true = [
        ChunkTruth("r0", chunk.transport_index, 0, 0, 0, chunk.arrival_ns - 2 * NS_PER_MS) for chunk in record.chunks
    ]
    true[-2] = replace(true[-2], sent_ns=true[-2].sent_ns - NS_PER_MS)
    error = step_summary(record, truth=true)["client_error"]
    assert error["median_absolute_ms"] == {"ttfc_ms": 2.0, "interval_ms": 0.0, "queue_wait_ms": 0.0}
    assert (error["is_within_target"], error["frames_without_truth"]) == (True, 0)
    assert (error["stalls"]["sessions"], error["stalls"]["same_count"]) == (1, 1)
    slow = [replace(one, sent_ns=one.sent_ns - 4 * NS_PER_MS) for one in true]
    assert step_summary(record, truth=slow)["client_error"]["is_within_target"] is False
    assert step_summary(record)["client_error"] is None


MANIFEST = {
    "started_at": "2026-01-02T03:04:05Z",
    "environment": {"git_revision": "abc"},
    "workload": {
        "url": "ws://h/v1/realtime/video",
        "values": {
            "model": "m",
            **dict.fromkeys(("num_chunks", "num_frames", "width", "height", "fps", "seed"), 1),
            **dict.fromkeys(("flow_shift", "video_seconds"), 1.0),
            "prompt_updates": [],
        },
    },
}


def test_the_published_report_holds_the_published_numbers() -> None:
    """Key for key what the metrics module gives; a single session is its own aggregate."""
    record = session()
    report = published_report(MANIFEST, [record], BASIS)
    (one,) = report["sessions"]
    seen = observation(record)
    expected = compute_metrics(seen.records, fps=16.0, ttfc_s=1.0, session_wall_s=6.61)
    assert one["metrics"] == expected
    assert report["metrics"] == {**one["metrics"], "sessions": 1}
    assert (one["session_index"], one["request_id"], len(one["chunks"])) == (0, "r0", 9)
    assert report["caveats"] == ["2 steady intervals: below 100, p95 and p99 are close to the maximum"]


def test_what_the_published_report_cannot_hold_stands_beside_it() -> None:
    """A failed session, and one that never filled the buffer; with none left the metrics are empty."""
    basis = replace(BASIS, buffer_chunks=9)
    report = published_report(MANIFEST, [session(chunks=8), session(1, outcome="late_error", detail="400")], basis)
    assert [(one["session_index"], one["outcome"]) for one in report["failed_sessions"]] == [
        (0, "ok"),
        (1, "late_error"),
    ]
    assert (report["sessions"], report["metrics"]) == ([], {})

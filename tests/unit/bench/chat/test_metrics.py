"""A step's records to its summary: every number from records whose truth is known."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from tests.unit.bench.chat.made_up import MS, answered, failed

from vision_bench.bench.chat.metrics import Tally
from vision_bench.bench.chat.numbers import StepContext
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.slo import read_slo
from vision_bench.bench.requests import Window

WINDOW = {field.name for field in fields(Window)}


def summary_of(records: list[ChatRecord], *, seconds: float = 10, rate: float | None = 10, **more: Any) -> Any:
    facts: dict[str, Any] = {"is_complete": True, "due": len(records)}
    facts |= {name: more.pop(name) for name in WINDOW if name in more}
    window = Window(start_ns=0, window_ns=int(seconds * 1e9), offered_rate=rate, **facts)
    tally = Tally(StepContext(window, **{"streams": True} | more))
    for record in records:
        tally.add(record)
    found = tally.summary()
    assert json.loads(json.dumps(found, allow_nan=False)) == found, "strict JSON"
    return found


def steady(count: int, *, every: float = 100, **more: Any) -> list[ChatRecord]:
    """``count`` good answers, one each ``every`` ms, each with events 100, 110 and 120 ms behind its due time."""
    return [
        answered(index, due=index * every, events=tuple(index * every + at for at in (100, 110, 120)), **more)
        for index in range(count)
    ]


def test_a_quiet_step() -> None:
    """100 equal answers in 10 s: every number is the one that was made up."""
    found = summary_of(steady(100))
    assert found["requests"] == {
        "due": 100, "sent": 100, "ok": 100, "failed": 0, "outcomes": {"ok": 100}, "statuses": {"200": 100},
    }  # fmt: skip
    assert (found["offered_rate"], found["dispatched_rate"]) == (10, 10)
    assert found["achieved_rate"] == pytest.approx(10, rel=0.02)
    assert found["verdict"] == "STABLE" and "of 10.0/s offered" in found["verdict_reason"]
    for name, value in (("ttft_ms", 100), ("scheduled_ttft_ms", 100), ("icl_ms", 10), ("itl_ms", 10), ("tpot_ms", 10)):
        assert (found[name]["p50"], found[name]["max"]) == (value, value)
    assert (found["e2e_ms"]["p95"], found["response_ms"]["p95"], found["lag_ms"]["p95"]) == (120, 120, 0)
    assert (found["icl_ms"]["count"], found["ttft_ms"]["count"]) == (200, 100)
    assert found["ttft_ms"]["withheld"] == {"p99": "100 samples, 368 needed"}
    assert found["output_tokens_per_second"] == pytest.approx(30, rel=0.05)
    assert (found["goodput"], found["slo"]["attainment"]) == (10, 1)


def test_waiting_in_the_client_is_in_the_scheduled_figures() -> None:
    """10 a second planned, one at a time, 0.5 s each, 8 requests: users wait 1.9 s on average, the server takes 0.5."""
    records = [
        answered(index, due=index * 100, sent=index * 500, events=(), stop_ns=(index + 1) * 500 * MS,
                 end_ns=(index + 1) * 500 * MS)
        for index in range(8)
    ]  # fmt: skip
    found = summary_of(records, seconds=0.8, streams=False)
    assert (found["response_ms"]["mean"], found["e2e_ms"]["mean"]) == (1900, 500)
    assert found["wait_ms"]["mean"] == 1400
    assert (found["offered_rate"], found["achieved_rate"], found["verdict"]) == (10, 2, "UNDETERMINED")


def test_failures_count_in_every_denominator() -> None:
    """Every second call fails: half is attained, half a rate is achieved, and no failure's latency is in a column."""
    records = [
        record
        if record.index % 2
        else failed(record.index, due=record.index * 100, stop=record.index * 100 + 1, status=500)
        for record in steady(100)
    ]
    found = summary_of(records)
    assert found["requests"]["outcomes"] == {"http_error": 50, "ok": 50}
    assert found["requests"]["statuses"] == {"200": 50, "500": 50}
    assert (found["requests"]["failed"], found["slo"]["attainment"], found["goodput"]) == (50, 0.5, 5)
    assert found["achieved_rate"] == pytest.approx(5, rel=0.03)
    assert (found["ttft_ms"]["count"], found["ttft_ms"]["max"]) == (50, 100)
    assert (found["response_ms"]["count"], found["response_ms"]["p50"]) == (100, None)
    assert "50 of 100 failed" in found["response_ms"]["withheld"]["p90"]
    assert (found["verdict"], found["verdict_reason"]) == ("UNDETERMINED", "50 of 100 failed (http_error 50)")


def test_partial_answers_are_not_throughput() -> None:
    """Tokens of an answer that broke off count nowhere."""
    broken = [answered(index, due=index * 100, outcome="truncated") for index in range(50)]
    found = summary_of([*broken, *[record for record in steady(100) if record.index >= 50]])
    assert found["completion_tokens"]["count"] == 50
    assert found["ttft_ms"]["count"] == 50


def test_nothing_at_all_makes_a_report() -> None:
    """All failed without a token: no data, never 0."""
    found = summary_of([failed(index, due=index * 100) for index in range(30)], seconds=3)
    assert (found["ttft_ms"]["count"], found["ttft_ms"]["p50"], found["output_tokens_per_second"]) == (0, None, None)
    assert (found["achieved_rate"], found["goodput"]) == (None, 0)
    assert summary_of([], due=0)["verdict"] == "UNDETERMINED"


def test_unsent_arrivals_are_due_and_infinite() -> None:
    """They were not sent, have no lag, and stand in the scheduled columns."""
    records = [*steady(80), *[failed(80 + n, due=8000 + n * 100, outcome="unsent") for n in range(20)]]
    found = summary_of(records)
    assert (found["requests"]["due"], found["requests"]["sent"]) == (100, 80)
    assert (found["lag_ms"]["count"], found["scheduled_ttft_ms"]["count"]) == (80, 100)
    assert found["scheduled_ttft_ms"]["p50"] == 100 and found["scheduled_ttft_ms"]["p90"] is None


def test_what_still_runs_is_at_least_its_age() -> None:
    """Cut off after 3 s: a bound in the response column; its first token, which has come, is known."""
    running = [answered(90 + n, due=9000, events=(9100,), outcome="running", stop_ns=12_000 * MS) for n in range(10)]
    found = summary_of([*steady(90), *running])
    assert found["response_ms"]["withheld"]["max"] == "at least 3000.0: 10 of 100 still ran when the step ended"
    assert found["response_ms"]["p50"] == 120
    assert found["scheduled_ttft_ms"]["max"] == 100


def test_a_killed_run_accounts_for_what_it_lost() -> None:
    """Records 3 and 7 are missing below the highest index: they were due, and their end is not known."""
    records = [record for record in steady(50) if record.index not in (3, 7)]
    found = summary_of(records, due=None, is_complete=False, seconds=5)
    assert found["requests"]["outcomes"] == {"lost": 2, "ok": 48}
    assert (found["requests"]["due"], found["response_ms"]["count"], found["verdict"]) == (50, 50, "UNDETERMINED")


def test_goodput_is_within_every_limit_and_valid() -> None:
    """One in ten is late and one in ten is invalid: 80 of 100, with Wilson's interval."""
    records = steady(100)
    for record in records:
        record.is_valid = record.index % 10 != 1
        if record.index % 10 == 0:
            record.k_ns[0] += 5 * MS
    found = summary_of(records, slo=read_slo("ttft_ms<101"))
    assert (found["slo"]["attained"], found["goodput"], found["slo"]["limits"]) == (80, 8, {"ttft_ms": "<101"})
    assert found["slo"]["interval"] == pytest.approx([0.711, 0.867], abs=1e-3)
    assert found["valid"] == {"checked": 100, "valid": 90}


def test_first_and_repeated_bodies_are_told_apart() -> None:
    """A body that was seen before is served ten times faster: the mixture says so."""
    records = steady(20)
    for record in records[10:]:
        record.is_repeat = True
        record.k_ns = [at - 90 * MS for at in record.k_ns]
    found = summary_of(records, seconds=2)
    assert found["repeats"] == 10
    assert (found["splits"]["first"]["ttft_ms"]["mean"], found["splits"]["repeat"]["ttft_ms"]["mean"]) == (100, 10)
    assert "splits" in found and summary_of(steady(5))["splits"] == {}


def test_warm_and_cold_threads_are_told_apart() -> None:
    """By the records' own flag."""
    records = steady(10)
    for record in records:
        record.is_warm = record.index >= 5
    splits = summary_of(records)["splits"]
    assert (splits["cold"]["e2e_ms"]["count"], splits["warm"]["e2e_ms"]["count"]) == (5, 5)


def test_a_cold_run_with_cached_tokens_is_doubted() -> None:
    """The server's own count proves the repeat."""
    records = steady(100, cached_tokens=0)
    assert summary_of(records, is_cold=True)["verdict"] == "STABLE"
    records[3].cached_tokens = 16
    found = summary_of(records, is_cold=True)
    assert (found["verdict"], found["cache"]["requests_with_cached_tokens"]) == ("UNDETERMINED", 1)
    assert "used cached tokens" in found["verdict_reason"]
    assert summary_of(steady(3))["cache"] == {"told": 0, "requests_with_cached_tokens": 0, "cached_tokens": None}


def test_answers_of_another_length_than_asked_for_are_doubted() -> None:
    """64 tokens were to be generated, one answer has three."""
    records = steady(100, tokens=64)
    records[0].completion_tokens = 3
    assert "not 64 tokens long" in summary_of(records, fixed_tokens=64)["verdict_reason"]


def test_a_target_that_does_not_stream_has_no_first_token() -> None:
    """Absent in the scheduled column too, also for what failed."""
    found = summary_of([answered(0, events=()), failed(1)], streams=False)
    assert (found["ttft_ms"]["count"], found["scheduled_ttft_ms"]["count"], found["icl_ms"]["count"]) == (0, 0, 0)
    assert (found["e2e_ms"]["count"], found["response_ms"]["count"]) == (1, 2)


def test_the_drivers_count_is_checked_by_the_records() -> None:
    """Little's law: 10 a second for 121 ms are 1.21 in flight; a driver that counted 2 is told to be off."""
    assert summary_of(steady(100), mean_in_flight=1.21)["in_flight"]["little_error"] == pytest.approx(0, abs=0.01)
    assert summary_of(steady(100), mean_in_flight=2.0)["in_flight"]["little_error"] == pytest.approx(0.395, abs=0.01)


def test_what_the_server_told_and_what_failed_are_listed() -> None:
    """Server times by their own names; failures with their words."""
    records = [
        *steady(10, server_ms={"queue_ms": 2.0}),
        failed(10, detail="HTTP 500: boom"),
        failed(11, detail="HTTP 500: boom"),
    ]
    found = summary_of(records)
    assert found["server_ms"]["queue_ms"]["mean"] == 2.0
    assert found["failures"] == [{"outcome": "http_error", "detail": "HTTP 500: boom", "count": 2}]


def test_a_stall_inside_a_stream_cannot_hide() -> None:
    """One gap of 400 ms in each answer: the longest gap, the pooled tail and the stall ratio show it."""
    records = [answered(n, due=n * 100, events=tuple(n * 100 + at for at in (100, 105, 505, 510))) for n in range(100)]
    found = summary_of(records)
    assert (found["max_icl_ms"]["p50"], found["icl_ms"]["p95"], found["icl_ms"]["p50"]) == (400, 400, 5)
    assert found["stall_ratio"]["p50"] == pytest.approx(300 / 410, abs=1e-5)


def test_every_stage_is_in_the_table_told_or_unknown() -> None:
    """Client stamps, the server's own words and its histograms, each with its source; nobody's stage is unknown."""
    records = steady(40, server_ms={"queue_ms": 2.0})
    told = {"vllm:request_prefill_time_seconds": {"count": 40, "mean_ms": 50.0}}
    rows = {row["stage"]: row for row in summary_of(records, server={"histograms": told, "counters": {}})["stages"]}
    assert rows["gateway_queue"]["ms"]["p50"] == 2.0 and rows["gateway_queue"]["source"] == "Server-Timing"
    assert rows["prefill"]["server"] == {"count": 40, "mean_ms": 50.0} and "/metrics" in rows["prefill"]["source"]
    assert rows["first_to_last_event"]["ms"]["p50"] == 20
    unknown = [name for name, row in rows.items() if row["source"].startswith("unknown")]
    assert unknown == [
        "frame_capture", "video_transport", "selection", "encoding", "gateway_upstream", "gateway_itself",
        "decoding_and_preprocessing", "scheduling", "generation",
    ]  # fmt: skip
    assert all(rows[name]["ms"] is rows[name]["server"] is None for name in unknown)
    assert rows["selection"]["source"] == "unknown: done before the clock starts"


def test_the_gateways_own_time_is_what_queue_and_upstream_leave() -> None:
    """Headers 30 ms after the last byte, 2 in the queue and 25 upstream: 3 are the gateway's and the network's."""
    records = [
        answered(n, due=n * 100, sent=n * 100, bod_ns=n * 100 * MS, rsp_ns=(n * 100 + 30) * MS,
                 server_ms={"queue_ms": 2.0, "upstream_ms": 25.0})
        for n in range(1, 40)
    ]  # fmt: skip
    rows = {row["stage"]: row for row in summary_of(records)["stages"]}
    assert (
        rows["gateway_itself"]["ms"]["p50"] == 3.0 and rows["gateway_itself"]["source"] == "client less Server-Timing"
    )


def test_encoding_inside_the_clock_is_a_stage() -> None:
    """3 ms to read and 4 to encode and write, before anything was sent."""
    records = [
        answered(n, due=n * 100, sent=n * 100 + 7, events=(n * 100 + 50,), sel_ns=(n * 100 + 3) * MS,
                 enc_ns=(n * 100 + 5) * MS, ser_ns=(n * 100 + 7) * MS)
        for n in range(10)
    ]  # fmt: skip
    rows = {row["stage"]: row["ms"] for row in summary_of(records)["stages"]}
    assert (rows["selection"]["mean"], rows["encoding"]["mean"], rows["wait_in_client"]["mean"]) == (3, 4, 0)

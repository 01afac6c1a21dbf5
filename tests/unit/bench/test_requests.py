"""bench.requests: what every kind says of a step, from records whose truth is known."""

from __future__ import annotations

import math
from typing import Any

from vision_bench.bench.record import Record
from vision_bench.bench.requests import LAG, RESPONSE, Requests, Window
from vision_bench.bench.verdict import Verdict

MS = 1_000_000
WINDOW = Window(start_ns=0, window_ns=1_000 * MS, is_complete=True, offered_rate=5, due=5)


def record(index: int, outcome: str | None = "ok", *, due: int = 0, **more: Any) -> Record:
    stamps = {"due_ns": due * MS, "stop_ns": (due + 100) * MS}
    return Record(step=1, index=index, ordinal=index, outcome=outcome, **stamps | more)


def test_everything_that_was_due_is_sent_dropped_or_told() -> None:
    """One of each outcome: who is in the denominators, in the failures and in the response times."""
    requests = Requests(WINDOW)
    requests.add(record(0, dsp_ns=2 * MS), 90 * MS)
    requests.add(record(1, "http_error", detail="500"), None)
    requests.add(record(2, "unsent"), None)
    requests.add(record(3, "dropped"), None)
    closed = requests.close()  # the fifth went down with the run
    found = closed.summary()
    outcomes = {"dropped": 1, "http_error": 1, "lost": 1, "ok": 1, "unsent": 1}
    assert found["requests"] == {"due": 5, "sent": 3, "ok": 1, "failed": 3, "outcomes": outcomes}
    assert [one["outcome"] for one in found["failures"]] == ["http_error", "unsent"], "a dropped frame is no failure"
    assert list(closed.samples.of(RESPONSE)) == [90, math.inf, math.inf, math.inf], "ok, failed, unsent, lost"
    assert list(closed.samples.of(LAG)) == [2], "what never left has no lag"
    assert closed.evidence().failures == "http_error 1, unsent 1, lost 1"


def test_an_answer_may_be_there_before_its_request_is_over() -> None:
    """The response ends with the answer; the place in the system is free at the end."""
    requests = Requests(WINDOW)
    requests.add(record(0), 90 * MS, 70 * MS)
    closed = requests.close()
    assert closed.samples.of(RESPONSE)[0] == 70
    assert [span.end_ns for span in closed.spans] == [90 * MS]


def test_a_request_that_runs_has_waited_its_age_at_least() -> None:
    """It is in the system without an end, and its response is known from below only."""
    requests = Requests(WINDOW)
    for index, outcome in enumerate(("running", None)):
        requests.add(record(index, outcome, due=10), None)
    closed = requests.close()
    assert closed.outcomes["running"] == 2
    assert [span.end_ns for span in closed.spans] == [None, None]
    assert len(closed.samples.of(RESPONSE)) == 3, "the lost ones alone"
    assert closed.samples.column(RESPONSE)["count"] == 5


def test_a_kinds_own_number_from_the_due_time_has_the_same_denominator() -> None:
    """Failed, running and lost requests are in it as they are in the response time."""
    requests = Requests(WINDOW, scheduled=(RESPONSE, "first_ms"))
    for index, outcome in enumerate(("ok", "http_error", "running", "dropped")):
        one = record(index, outcome)
        requests.add(one, 90 * MS)
        requests.put_scheduled("first_ms", one, 20.0)
    closed = requests.close()
    assert list(closed.samples.of("first_ms")) == [20, math.inf, math.inf]
    assert closed.samples.column("first_ms")["count"] == closed.samples.column(RESPONSE)["count"] == 4


def test_a_load_that_is_judged_otherwise_brings_its_verdict() -> None:
    """Cameras are judged by missed frames, not by their flow."""
    verdict = Verdict("SATURATED", "half the frames were missed")
    found = Requests(WINDOW).close().summary(verdict)
    assert (found["verdict"], found["verdict_reason"]) == ("SATURATED", "half the frames were missed")

"""A step's records to its summary: every number from records whose truth is known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.bench.preprocess.made import MS, served

from vision_bench.bench.preprocess.metrics import Tally
from vision_bench.bench.preprocess.record import PreprocessRecord
from vision_bench.bench.requests import Window


def summary_of(records: list[PreprocessRecord], *, seconds: float, rate: float, workers: int = 1) -> Any:
    window = Window(
        start_ns=0, window_ns=int(seconds * 1e9), is_complete=True, offered_rate=rate, due=len(records), cpu_share=0.1
    )
    tally = Tally(window, workers)
    for record in records:
        tally.add(record)
    found = tally.summary()
    assert json.loads(json.dumps(found, allow_nan=False)) == found, "strict JSON"
    return found


def queue_of_one_worker(rate: float, seconds: float, service: float) -> list[PreprocessRecord]:
    """Equal gaps, one worker that takes ``service`` ms: who comes while it works waits."""
    records, free = [], 0.0
    for index in range(round(rate * seconds)):
        due = 1e3 * index / rate
        start = max(due, free)
        free = start + service
        records.append(served(index, due=due, start=start, work=service))
    return records


def test_under_capacity_nobody_waits() -> None:
    """10 a second at 50 ms each: half a worker's time, no queue, level."""
    found = summary_of(queue_of_one_worker(10, 20, 50), seconds=20, rate=10)
    assert (found["verdict"], found["utilisation"]) == ("STABLE", 0.5)
    assert (found["response_ms"]["p90"], found["queue_ms"]["max"], found["service_ms"]["p50"]) == (50, 0, 50)
    assert found["achieved_rate"] == pytest.approx(10, rel=0.02)
    assert abs(found["backlog"]["slope_per_second"]) < 0.05


@pytest.mark.parametrize("seconds", [10, 20, 40])
def test_over_capacity_the_tail_is_the_length_of_the_run(seconds: float) -> None:
    """5 a second at 400 ms each: the wait grows by a second each second, so p90 is 0.9 of the run, whatever its length.

    A published p90 of 11.6 s at this rate and about this service time is that of a run of 12.4 s.
    """
    found = summary_of(queue_of_one_worker(5, seconds, 400), seconds=seconds, rate=5)
    assert (found["verdict"], found["utilisation"]) == ("SATURATED", 2.0)
    assert found["response_ms"]["p90"] / 1e3 == pytest.approx(0.9 * seconds + 0.4, abs=0.5)
    assert found["backlog"]["slope_per_second"] == pytest.approx(2.5, rel=0.1)
    assert found["achieved_rate"] == pytest.approx(2.5, rel=0.05)
    assert found["service_ms"]["p90"] == 400, "service does not grow; only the queue does"


def test_a_worker_more_halves_its_share() -> None:
    """Utilisation is of one worker."""
    assert summary_of(queue_of_one_worker(10, 4, 50), seconds=4, rate=10, workers=2)["utilisation"] == 0.25


def test_a_request_that_never_came_to_a_worker_counts_as_waiting_for_ever() -> None:
    """It is in the response column as infinite, in no other, and in the failures by name."""
    records = queue_of_one_worker(10, 4, 50)
    lost = PreprocessRecord(step=1, index=40, ordinal=40, due_ns=4000 * MS, dsp_ns=4000 * MS, stop_ns=5000 * MS)
    lost.end("worker_died", "worker 0 ended with status -9")
    found = summary_of([*records, lost], seconds=5, rate=8.2)
    assert found["requests"] == {
        "due": 41, "sent": 41, "ok": 40, "failed": 1, "outcomes": {"ok": 40, "worker_died": 1},
    }  # fmt: skip
    assert (found["response_ms"]["count"], found["response_ms"]["max"], found["service_ms"]["count"]) == (41, None, 40)
    assert found["failures"] == [{"outcome": "worker_died", "detail": "worker 0 ended with status -9", "count": 1}]


def test_handover_is_what_the_worker_does_not_know_of() -> None:
    """Service of 53 ms of which the preprocessor had 50."""
    found = summary_of([served(0, due=0, start=1, work=50, handover=3)], seconds=1, rate=1)
    assert (found["work_ms"]["mean"], found["handover_ms"]["mean"], found["service_ms"]["mean"]) == (50, 3, 53)
    assert found["queue_ms"]["mean"] == 1


def test_nothing_due_gives_no_numbers() -> None:
    """None everywhere, never 0."""
    found = summary_of([], seconds=1, rate=1)
    assert found["verdict"] == "UNDETERMINED"
    assert found["utilisation"] is None and found["backlog"] == {"slope_per_second": None, "interval": None}
    assert found["response_ms"]["p50"] is None and found["achieved_rate"] is None

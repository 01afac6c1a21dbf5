"""Sessions and steps made up for tests: what a client saw of them, and the summary of a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.bench.realtime.made import arrivals

from vision_bench.bench.realtime.record import SessionRecord
from vision_bench.bench.realtime.records import NS_PER_MS
from vision_bench.bench.realtime.step import StepFacts, StepTally
from vision_bench.bench.realtime.summary import Basis

BASIS = Basis(fps=16.0, width=64, height=48)
FACTS = StepFacts(
    step=2,
    window_ns=10_000 * NS_PER_MS,
    is_complete=True,
    offered_rate=None,
    due=None,
    mean_in_flight=1.0,
    peak_in_flight=1,
    loop_lag_p99_ms=1.0,
    cpu_share=0.1,
)


def session(
    index: int = 0, *, gap_ms: float = 700, chunks: int = 9, start_ms: float = 0, **changes: Any
) -> SessionRecord:
    """A session whose chunks come ``gap_ms`` apart, the first after 1000 ms."""
    at_ms = [start_ms + 1000 + gap_ms * place for place in range(chunks)]
    end_ns = round((at_ms[-1] + 10) * NS_PER_MS) if at_ms else None
    values: dict[str, Any] = {
        "step": 2,
        "index": index,
        "ordinal": index,
        "due_ns": round(start_ms * NS_PER_MS),
        "start_sent_ns": round(start_ms * NS_PER_MS),
        "request_id": f"r{index}",
        "num_chunks": chunks,
        "chunks": arrivals(*at_ms, trailer_ms=at_ms[-1] + 5 if at_ms else None),
        "done_ns": end_ns,
        "ended_ns": end_ns,
        "outcome": "ok",
    }
    return SessionRecord(**{**values, **changes})


def step_summary(*records: SessionRecord, basis: Basis = BASIS, **facts: Any) -> dict[str, Any]:
    tally = StepTally(replace(FACTS, **facts), basis)
    for record in records:
        tally.add(record)
    return tally.summary()

"""A step's sessions as its summary: what every kind says, what this folder computes, and each session in a line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vision_bench.bench.column import column
from vision_bench.bench.realtime.metrics import ChunkRecord, simulate_playback
from vision_bench.bench.realtime.pixels import PixelProof
from vision_bench.bench.realtime.record import SessionRecord, observation
from vision_bench.bench.realtime.records import NS_PER_MS, SessionObservation
from vision_bench.bench.realtime.sessions import queue_waits_ms, recovery, startup
from vision_bench.bench.realtime.summary import Basis, summarise_sessions
from vision_bench.bench.realtime.truth import TimingErrors, declared_records, queue_errors_ms, timing_errors
from vision_bench.bench.record import OK, UNSENT
from vision_bench.bench.verdict import MAX_CPU_SHARE, MAX_FAILED, MAX_LOOP_LAG_MS
from vision_bench.stats import percentile
from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth

Json = dict[str, Any]

MAX_LAG_SHARE = 0.02
"""Of the mean interval: so late may the event loop be (p99) before it is the client that is measured; 5 ms at least."""
TARGET_ERROR_MS = 5.0
"""The client's own median error has to stay below it."""


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What is known of a step besides its sessions."""

    step: int
    window_ns: int
    is_complete: bool
    offered_rate: float | None
    due: int | None
    mean_in_flight: float
    peak_in_flight: int
    loop_lag_p99_ms: float
    cpu_share: float
    truth: Sequence[ChunkTruth | EventTruth] = ()
    has_one_clock: bool = False


class StepTally:
    """Sessions of one step, and the warm-up before it, in any order."""

    def __init__(self, facts: StepFacts, basis: Basis) -> None:
        self._facts = facts
        self._basis = basis
        self._records: list[SessionRecord] = []

    def add(self, record: SessionRecord) -> None:
        """One more session."""
        record.is_warmup = record.step != self._facts.step
        self._records.append(record)

    def summary(self) -> Json:
        """Strict JSON."""
        facts, basis = self._facts, self._basis
        records = sorted(self._records, key=lambda record: (record.start_sent_ns or record.due_ns, record.ordinal))
        measured = [record for record in records if not record.is_warmup]
        sent = [record for record in measured if record.outcome != UNSENT]
        ok = [record for record in measured if record.outcome == OK]
        due = len(measured) if facts.due is None else max(facts.due, len(measured))
        sessions = [observation(record) for record in records if record.outcome != UNSENT]
        numbers = summarise_sessions(sessions, basis=basis)
        verdict, reason = self._verdict(due, len(ok), numbers)
        seconds = facts.window_ns / 1e9
        return {
            "verdict": verdict,
            "verdict_reason": reason,
            "is_complete": facts.is_complete,
            "duration_seconds": round(seconds, 6),
            "offered_rate": facts.offered_rate,
            "achieved_rate": round(len(ok) / seconds, 6) if seconds > 0 else None,
            "requests": {
                "due": due,
                "sent": len(sent),
                "ok": len(ok),
                "failed": due - len(ok),
                "outcomes": dict(sorted(Counter(record.outcome or "" for record in measured).items())),
            },
            "failures": _failures(measured),
            "oddities": dict(sorted(_sum_counts(record.oddities for record in measured).items())),
            "in_flight": {"mean": facts.mean_in_flight, "peak": facts.peak_in_flight},
            "client": {"loop_lag_p99_ms": facts.loop_lag_p99_ms, "cpu_share": facts.cpu_share},
            **numbers,
            "recovery": _recoveries(records, sessions),
            "pixels": _sum_proofs([record.proof for record in measured if record.proof is not None]),
            "client_error": self._client_error(sessions),
            "each": [_one(record, basis) for record in measured],
        }

    def _verdict(self, due: int, ok: int, numbers: Json) -> tuple[str, str]:
        facts, basis = self._facts, self._basis
        if not facts.is_complete:
            return "UNDETERMINED", "the step was cut off"
        interval_ms = numbers["chunks"]["interval_all_ms"]["mean"] or 0.0
        if facts.loop_lag_p99_ms > max(MAX_LOOP_LAG_MS, MAX_LAG_SHARE * interval_ms):
            return "CLIENT-LIMITED", f"the client's event loop was {facts.loop_lag_p99_ms:.1f} ms late (p99)"
        if facts.cpu_share > MAX_CPU_SHARE:
            return "CLIENT-LIMITED", f"the client used {facts.cpu_share:.0%} of a processor"
        if not due or (due - ok) / due > MAX_FAILED:
            return "UNDETERMINED", f"{due - ok} of {due} sessions failed"
        deadlines = numbers["chunks"]["deadlines"]
        count = deadlines["met"] + deadlines["missed"]
        if not count:
            return "UNDETERMINED", "no steady interval; 8 chunks are the fewest that have one"
        steady_ms = numbers["chunks"]["interval_steady_ms"]["mean"]
        said = f"a steady chunk takes {steady_ms:.0f} ms on average (count {count}) and plays for"
        plays_ms = 12 / basis.fps * 1000
        if steady_ms > plays_ms:
            return "BEHIND", f"{said} {plays_ms:.0f} ms at {basis.fps:g} fps"
        return "STABLE", f"{said} {plays_ms:.0f} ms at {basis.fps:g} fps"

    def _client_error(self, sessions: Sequence[SessionObservation]) -> Json | None:
        """None where no server says what it did."""
        facts, basis = self._facts, self._basis
        if not facts.truth:
            return None
        measured = [session for session in sessions if not session.is_warmup]
        errors = timing_errors(measured, facts.truth, has_one_clock=facts.has_one_clock)
        waits = queue_waits_ms([session.times for session in sessions], slots=basis.server_slots)
        queue_ms = queue_errors_ms(
            [(session, wait) for session, wait in zip(sessions, waits, strict=True) if not session.is_warmup],
            facts.truth,
        )
        return {**_error_columns(errors, queue_ms), "stalls": _stall_errors(measured, facts.truth, basis)}


def _error_columns(errors: TimingErrors, queue_ms: Sequence[float]) -> Json:
    columns = {
        "ttfc_ms": errors.ttfc_ms,
        "interval_ms": errors.interval_ms,
        "first_affected_ms": errors.first_affected_ms,
        "queue_wait_ms": queue_ms,
    }
    medians = {name: percentile([abs(value) for value in values], 0.5) for name, values in columns.items() if values}
    return {
        **{name: column(values) for name, values in columns.items()},
        "median_absolute_ms": {name: round(value, 6) for name, value in medians.items()},
        "target_ms": TARGET_ERROR_MS,
        "is_within_target": max(medians.values()) < TARGET_ERROR_MS if medians else None,
        "on_the_way_ms": None if errors.on_the_way_ms is None else column(errors.on_the_way_ms),
        "server_lateness_ms": column(errors.server_lateness_ms),
        "frames_without_truth": errors.frames_without_truth,
    }


def _stall_errors(
    sessions: Sequence[SessionObservation], truth: Sequence[ChunkTruth | EventTruth], basis: Basis
) -> Json:
    """The same player over what was measured and over what was declared."""
    compared = same = 0
    errors_ms = []
    for session in sessions:
        declared = declared_records(session, truth)
        seen = session.records[: len(declared)]
        if len(declared) < basis.buffer_chunks or len(seen) != len(declared):
            continue
        measured, true = (_play(records, basis) for records in (seen, declared))
        compared += 1
        same += measured.underrun_count == true.underrun_count
        errors_ms.append((measured.total_stall_s - true.total_stall_s) * 1000)
    return {"sessions": compared, "same_count": same, "total_stall_ms": column(errors_ms)}


def _play(records: Sequence[ChunkRecord], basis: Basis) -> Any:
    return simulate_playback(records, fps=basis.fps, buffer_chunks=basis.buffer_chunks)


def _recoveries(records: Sequence[SessionRecord], sessions: Sequence[SessionObservation]) -> list[Json]:
    """Each session that lost its connection, and the one that started next."""
    sent = [record for record in records if record.outcome != UNSENT]
    dropped = [place for place, record in enumerate(sent) if _was_dropped(record)]
    undisturbed = [
        ttfc
        for place, (record, session) in enumerate(zip(sent, sessions, strict=True))
        if record.outcome == OK and not record.is_warmup and place - 1 not in dropped
        if (ttfc := startup(session.times, session.arrivals).ttfc_ms) is not None
    ]
    found = []
    for place in dropped:
        after = next((at for at in range(place + 1, len(sent)) if _started_after(sent[at], sent[place])), None)
        if after is None:
            continue
        one = recovery(
            dropped_ns=sent[place].ended_ns or 0,
            next_times=sessions[after].times,
            next_arrivals=sessions[after].arrivals,
            undisturbed_ttfcs_ms=undisturbed,
        )
        found.append(
            {
                "dropped": sent[place].index,
                "next": sent[after].index,
                **asdict(one),
                "undisturbed_ttfc_ms": column(one.undisturbed_ttfc_ms),
            }
        )
    return found


def _was_dropped(record: SessionRecord) -> bool:
    return record.ended_ns is not None and (record.left_ns is not None or record.outcome == "connection_lost")


def _started_after(record: SessionRecord, before: SessionRecord) -> bool:
    return (record.start_sent_ns or 0) >= (before.ended_ns or 0)


def _failures(records: Sequence[SessionRecord]) -> list[Json]:
    counts = Counter((record.outcome, record.detail) for record in records if record.outcome != OK)
    return [{"outcome": name, "detail": detail, "count": count} for (name, detail), count in counts.most_common(5)]


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total


def _sum_proofs(proofs: Sequence[PixelProof]) -> Json | None:
    """None where no picture had marks."""
    if not proofs:
        return None
    return {"sessions": len(proofs), **_sum_counts(asdict(proof) for proof in proofs)}


def _one(record: SessionRecord, basis: Basis) -> Json:
    session = observation(record)
    chunks = session.records
    waits = startup(session.times, session.arrivals, buffer_chunks=basis.buffer_chunks)
    gaps_ms = [chunk.inter_arrival_s * 1000 for chunk in chunks[1:]]
    ended_ns = session.times.ended_ns
    return {
        "index": record.index,
        "session": record.ordinal,
        "request_id": record.request_id,
        "outcome": record.outcome,
        "detail": record.detail,
        "oddities": record.oddities,
        "errors": record.errors,
        "chunks": len(chunks),
        "frames": sum(chunk.num_frames for chunk in chunks),
        "bytes": sum(chunk.byte_length for chunk in chunks),
        "ttfc_ms": waits.ttfc_ms,
        "playback_start_ms": waits.playback_start_ms,
        "interval_mean_ms": math.fsum(gaps_ms) / len(gaps_ms) if gaps_ms else None,
        "interval_max_ms": max(gaps_ms, default=None),
        "wall_ms": None if ended_ns is None else (ended_ns - session.times.start_sent_ns) / NS_PER_MS,
    }

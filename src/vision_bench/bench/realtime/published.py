"""``report.json``: the published benchmark's report of a run, key for key: two of them can be laid side by side."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from vision_bench.bench.realtime.metrics import aggregate_metrics, compute_metrics
from vision_bench.bench.realtime.record import SessionRecord, observation
from vision_bench.bench.realtime.records import NS_PER_SECOND, milliseconds_between
from vision_bench.bench.realtime.summary import Basis
from vision_bench.bench.record import OK

Json = dict[str, Any]

FEW_INTERVALS = 100
"""Below so many steady intervals a p95 or p99 is little more than the maximum."""


def published_report(manifest: Mapping[str, Any], records: Sequence[SessionRecord], basis: Basis) -> Json:
    """The report over the sessions that came to their end; those that did not stand under ``failed_sessions``.

    Args:
        manifest: of the run.
        records: its measured sessions, in the order in which they started.
        basis: what the numbers are taken against.
    """
    values = manifest["workload"]["values"]
    sessions: list[Json] = []
    failed: list[Json] = []
    for index, record in enumerate(records):
        try:
            if record.outcome != OK:
                raise ValueError(record.detail or "")
            sessions.append(_session(index, record, basis))
        except ValueError as problem:  # no chunk, or a buffer that was never filled
            failed.append({"session_index": index, "outcome": record.outcome, "detail": str(problem)})
    metrics = aggregate_metrics([session["metrics"] for session in sessions], fps=basis.fps) if sessions else {}
    intervals = sum(session["metrics"]["steady_chunks"] for session in sessions)
    return {
        "benchmark": "lingbot_world_realtime",
        "timestamp": manifest["started_at"],
        "endpoint": manifest["workload"]["url"],
        "model": values["model"],
        "git_revision": manifest["environment"]["git_revision"],
        "hostname": platform.node(),
        "workload": {key: values[key] for key in DESCRIBED},
        "config": {
            "num_sessions": len(records),
            "target_fps": basis.fps,
            "warmup_chunks": basis.warmup_chunks,
            "playback_buffer_chunks": basis.buffer_chunks,
            "slo_ms": basis.slo_ms,
        },
        "sessions": sessions,
        "failed_sessions": failed,
        "metrics": metrics,
        "caveats": [f"{intervals} steady intervals: below {FEW_INTERVALS}, p95 and p99 are close to the maximum"]
        if intervals < FEW_INTERVALS
        else [],
    }


DESCRIBED = (
    "num_chunks",
    "num_frames",
    "width",
    "height",
    "fps",
    "seed",
    "flow_shift",
    "video_seconds",
    "prompt_updates",
)


def _session(index: int, record: SessionRecord, basis: Basis) -> Json:
    session = observation(record)
    chunks = session.records
    times = session.times
    wall_s = None if times.done_ns is None else (times.done_ns - times.start_sent_ns) / NS_PER_SECOND
    return {
        "session_index": index,
        "request_id": record.request_id,
        "video_start_ms": milliseconds_between(times.start_sent_ns, times.video_start_ns),
        "chunks": [chunk.to_dict() for chunk in chunks],
        "metrics": compute_metrics(
            chunks,
            fps=basis.fps,
            warmup_chunks=basis.warmup_chunks,
            slo_ms=basis.slo_ms,
            playback_buffer_chunks=basis.buffer_chunks,
            ttfc_s=chunks[0].arrival_s if chunks else None,
            session_wall_s=wall_s,
        ),
    }

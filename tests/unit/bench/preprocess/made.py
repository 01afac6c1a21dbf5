"""Records and workloads whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.preprocess_cases import QWEN3_VIDEO

from vision_bench.bench.preprocess.record import PreprocessRecord
from vision_bench.bench.workload import WorkloadFile

MS = 1_000_000
SMALL: dict[str, Any] = {
    "name": "small",
    "kind": "preprocess",
    "frames": 3,
    "width": 64,
    "height": 40,
    "arm": "both",
    "workers": [1, 2],
    "spec": {**QWEN3_VIDEO, "size": {"shortest_edge": 1024, "longest_edge": 200_000}},
}


def small_file(**changes: Any) -> WorkloadFile:
    """A workload of tiny clips."""
    return WorkloadFile(Path("small.toml"), SMALL | changes)


def served(index: int, *, due: float, start: float, work: float, handover: float = 0.0) -> PreprocessRecord:
    """A good one: due, handed to a worker, worked on and told, all in ms."""
    end_ns = int((start + work + handover) * MS)
    return PreprocessRecord(
        step=1,
        index=index,
        ordinal=index,
        due_ns=int(due * MS),
        dsp_ns=int(due * MS),
        start_ns=int(start * MS),
        work_ns=int(work * MS),
        end_ns=end_ns,
        stop_ns=end_ns,
        outcome="ok",
    )

"""Run folders whose every request is made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.bench.chat.made_up import MS, answered, failed

from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.rundir import RunFolder

GAP_MS = 100.0
"""Between the due times of two requests."""
CLIPS = ("a.mp4", "b.mp4", "c.mp4")


def manifest(count: int, steps: int = 1, **workload: Any) -> dict[str, Any]:
    """Of a chat run; ``workload`` goes over the facts of its workload."""
    values = {
        "name": "made-up",
        "model": "qwen",
        "max_tokens": 16,
        "max_completion_tokens": None,
        "extra": {},
        "state": None,
        "expected_rate": None,
        "expected_concurrency": None,
    }
    facts = {
        "name": "made-up",
        "fingerprint": "f00d",
        "values": values,
        "files": {},
        "bodies": list(CLIPS),
        "url": "http://127.0.0.1:8001/chat",
        "wire": "chat",
        "batch_size": None,
        "streams": True,
        "slo": None,
    }
    return {
        "schema": 1,
        "kind": "chat",
        "run_id": "vb-made",
        "started_at": "2026-11-30T12:00:00Z",
        "workload": facts | workload,
        "labels": {"model": "qwen", "media": "video, 2 fps", "encode": "before", "region": "here"},
        "load": {"seed": 0, "warm_up": 0},
        "plan": [step_facts(number, count) for number in range(steps)],
        "environment": {},
        "server": {},
    }


def step_facts(number: int, count: int) -> dict[str, Any]:
    """A planned step: ``rate 10``, ``rate 20`` …"""
    rate = 10.0 * (number + 1)
    return {
        "name": f"rate {rate:g}",
        "round": 0,
        "rate": rate,
        "concurrency": None,
        "arrivals": "constant",
        "window_ns": int(count * GAP_MS * MS),
        "max_requests": None,
        "load": "open",
        "offered_rate": 1000 / GAP_MS,
        "due": count,
        "schedule_sha256": f"{number:02}",
    }


def good(index: int, ttft_ms: float, **more: Any) -> ChatRecord:
    """An answer of ten tokens, 10 ms from one to the next, the first ``ttft_ms`` after it was due."""
    due = index * GAP_MS
    events = tuple(due + ttft_ms + 10 * number for number in range(10))
    clip = CLIPS[index % len(CLIPS)]
    given = {"item": clip, "body_sha256": clip, "text": f"answer {index}", "request_id": f"r-{index}"}
    return answered(index, due=due, events=events, **given | more)


def bad(index: int, detail: str = "HTTP 500: broken", **more: Any) -> ChatRecord:
    """A failure 50 ms after it was due."""
    clip = CLIPS[index % len(CLIPS)]
    given = {"item": clip, "body_sha256": clip, "detail": detail, "status": 500}
    return failed(index, due=index * GAP_MS, stop=index * GAP_MS + 50, **given | more)


def write_run(
    path: Path,
    *steps: Sequence[ChatRecord],
    due: int | None = None,
    change: Callable[[dict[str, Any]], None] = lambda _: None,
    is_cut: bool = False,
) -> Path:
    """A run with these records, a step for each list of them.

    Args:
        due: arrivals of each step; by default as many as it has records.
        change: may change the manifest.
        is_cut: the last step was killed.
    """
    count = due or max(len(records) for records in steps)
    facts = manifest(count, len(steps))
    change(facts)
    ordinal = 0
    with RunFolder.create(path, facts) as folder:
        for number, records in enumerate(steps):
            step = number + 1
            planned = facts["plan"][number]
            folder.begin_step(step, {"plan": number, "begin_ns": 0} | planned)
            for record in records:
                folder.keep(replace(record, step=step, ordinal=ordinal))
                ordinal += 1
            if not (is_cut and step == len(steps)):
                folder.end_step(step, end_facts(planned))
    return path


def end_facts(planned: dict[str, Any]) -> dict[str, Any]:
    """What the driver knows when a step is over."""
    return {
        "start_ns": 0,
        "window_ns": planned["window_ns"],
        "stop_ns": planned["window_ns"],
        "is_complete": True,
        "due": planned["due"],
        "mean_in_flight": 1.0,
        "peak_in_flight": 2,
        "cpu_share": 0.1,
        "loop_lag_count": 10,
        "loop_lag_p99_ms": 0.1,
        "loop_lag_max_ms": 0.2,
    }

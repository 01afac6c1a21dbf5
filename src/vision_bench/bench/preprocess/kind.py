"""The row of kind ``preprocess``: frames in memory to what a vision encoder takes, behind a queue, on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from vision_bench.bench.clock import Clock
from vision_bench.bench.kind import Kind, Link, Loaded, LoadOptions
from vision_bench.bench.preprocess.interpreters import stock_python
from vision_bench.bench.preprocess.metrics import Tally, queue_ms, service_ms
from vision_bench.bench.preprocess.record import PreprocessRecord
from vision_bench.bench.preprocess.target import PreprocessTarget
from vision_bench.bench.preprocess.workload import prepare
from vision_bench.bench.requests import Window
from vision_bench.bench.rundir import StepLog
from vision_bench.bench.workload import WorkloadFile
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]

TARGET = "local:"
"""What a target of this kind may be called; none means the same."""


def _load(file: WorkloadFile, options: LoadOptions) -> Loaded:
    if options.target not in {None, TARGET}:
        raise InvalidRequest(
            f"a workload of kind 'preprocess' runs on this machine, not at {options.target}; leave --target out"
        )
    if options.slo is not None:
        raise InvalidRequest("--slo is about answers of a model; a preprocessor gives none, leave it out")
    prepared = prepare(file)
    workload = prepared.workload
    # One Python for both arms where stock takes part: the same NumPy, the same Numba, one thing that differs.
    python = stock_python(os.environ) if "stock" in workload.arms else Path(sys.executable)
    variants = prepared.variants
    facts = {
        "name": workload.name,
        "fingerprint": prepared.fingerprint,
        "values": msgspec.to_builtins(workload),
        "files": prepared.files,
        "url": TARGET,
    }
    labels = {
        "model": prepared.spec.processor,
        "media": workload.media_shape,
        "threads": workload.threads,
        "region": workload.region,
        **variants[0],
    }

    @asynccontextmanager
    async def open_target(clock: Clock, _run_id: str) -> AsyncIterator[Link]:
        async with PreprocessTarget(prepared, python, clock=clock, environ=os.environ) as target:
            yield _link(target)

    several = variants if len(variants) > 1 else []
    return Loaded(facts, labels, workload.timeout_seconds, False, open_target, variants=several)


def _link(target: PreprocessTarget) -> Link:
    async def check() -> Json:
        return target.check()

    async def observe() -> None:
        return None

    def told(_before: Any, _after: Any) -> Json:
        return {}

    return Link(check, lambda _first, _count: None, observe, told, target.send, use=target.use)


def _tally(manifest: Mapping[str, Any], step: StepLog, last_ns: int) -> Tally:
    named = manifest["labels"] | (step.begin.get("variant") or {})
    return Tally(Window.of(step.begin, step.end, last_ns), named["workers"])


def _headline(record: PreprocessRecord) -> dict[str, float | None]:
    return {"queue": queue_ms(record), "service": service_ms(record)}


KIND = Kind(PreprocessRecord, _load, _tally, _headline)

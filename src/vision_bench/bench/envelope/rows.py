"""A point's run folder to its row of the table, and to the outcome of every fact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.scoring import Scoring
from vision_bench.bench.envelope.controls import Outcomes
from vision_bench.bench.envelope.points import envelope_of, in_words
from vision_bench.bench.rundir import MANIFEST, read_manifest, read_records
from vision_bench.bench.summary import summarise_folder
from vision_bench.stats import summarise

Json = dict[str, Any]


def row_of(folder: Path) -> Json | None:
    """What a point came to; None before it has begun."""
    if not (folder / MANIFEST).is_file():
        return None
    manifest, summary = read_manifest(folder), summarise_folder(folder)
    if not summary["steps"]:
        return None
    (step,) = summary["steps"]
    values = manifest["workload"]["values"]
    sent = summarise([float(r.request_bytes) for r in _records(folder, step["step"]) if r.request_bytes is not None])
    return {
        "folder": folder.name,
        "model": values["model"],
        "envelope": envelope_of(values),
        "words": in_words(values),
        "is_complete": summary["is_complete"],
        "fingerprint": manifest["workload"]["fingerprint"],
        "bodies": manifest["workload"]["bodies"],
        "accuracy": step["accuracy"],
        "prompt_tokens": step["prompt_tokens"]["mean"],
        "system_tokens": step["system_tokens"],
        "media_tokens": {kind: column["mean"] for kind, column in step["media_tokens"].items()},
        "completion_tokens": step["completion_tokens"]["mean"],
        "request_bytes": sent.mean,
        "requests": {name: step["requests"][name] for name in ("due", "ok", "failed")},
        **{name: _shortened(step[name]) for name in ("ttft_ms", "e2e_ms", "full_response_ms")},
    }


def _shortened(column: Json) -> Json:
    return {name: column[name] for name in ("count", "p50", "p95", "max")}


def outcomes_of(folder: Path) -> Outcomes:
    """Every fact that was asked in a point, by the place of its request."""
    manifest = read_manifest(folder)
    scoring = Scoring.of_manifest(manifest["workload"])
    if scoring is None:
        return {}
    (step,) = summarise_folder(folder)["steps"]
    return {
        (record.index, mark.fact): (mark.is_right, mark.sense)
        for record in _records(folder, step["step"])
        for scored in scoring.of_record(record)
        for mark in scored.marks
    }


def _records(folder: Path, step: int) -> list[ChatRecord]:
    return [record for record in read_records(folder, ChatRecord) if record.step == step]

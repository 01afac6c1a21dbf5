"""Reported beside true: a run's records against what the server kept of the same requests, on one machine's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.record import OK
from vision_bench.stats import percentile, samples_needed

Json = dict[str, Any]
Truth = Mapping[str, Any]

FRACTIONS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

NUMBERS: dict[str, tuple[Callable[[ChatRecord], float | None], str]] = {
    "ttft_ms": (formulas.ttft_ms, "ttft_ms"),
    "tpot_ms": (formulas.tpot_ms, "tpot_ms"),
    "e2e_ms": (formulas.e2e_ms, "e2e_ms"),
}
"""Ours, and the server's name for the same span."""


def own_error(records: Iterable[ChatRecord], truth: Iterable[Truth]) -> Json:
    """For each number reported and true percentiles with their distance; and whether counts agree.

    Args:
        records: those of the measured step.
        truth: lines of ``GET /truth`` of a declared engine.
    """
    kept = {str(line["request_id"]): line for line in truth}
    pairs = [(record, kept.get(str(record.request_id))) for record in records]
    good = [(record, line) for record, line in pairs if record.outcome == OK and line is not None]
    return {
        "requests": len(pairs),
        "ok": sum(record.outcome == OK for record, _ in pairs),
        "seen_by_server": sum(line is not None for _, line in pairs),
        "tokens_agree": all(record.completion_tokens in (None, line["tokens"]) for record, line in good),
        **{name: _beside(good, ours, theirs) for name, (ours, theirs) in NUMBERS.items()},
    }


def _beside(good: Sequence[tuple[ChatRecord, Truth]], ours: Callable[[ChatRecord], float | None], theirs: str) -> Json:
    """Only requests of which both tell the number."""
    both = [(mine, line[theirs]) for record, line in good if (mine := ours(record)) is not None and line[theirs]]
    told: Json = {"count": len(both)}
    for name, fraction in FRACTIONS.items():
        is_given = len(both) >= samples_needed(fraction)
        reported = percentile([mine for mine, _ in both], fraction) if is_given else None
        true = percentile([its for _, its in both], fraction) if is_given else None
        told[name] = None if reported is None or true is None else round(reported - true, 6)
        told[f"true_{name}"] = None if true is None else round(true, 6)
    return told

"""Cells and rounds: every arm does every cell in every round, in turn, so that a noisy minute hits all of them."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.gateway.arms import Arm
from benchmarks.gateway.load import chat_body, drive, request_bytes

from vision_bench.stats import percentile

DIRECT = "direct"


class Cell(NamedTuple):
    """One kind of load."""

    size_bytes: int
    concurrency: int
    is_streamed: bool = False

    @property
    def name(self) -> str:
        """As in the result file: ``1.6 MB x 4``."""
        size = f"{self.size_bytes / 1e6:g} MB" if self.size_bytes >= 1e6 else f"{self.size_bytes / 1e3:g} kB"
        return f"{size} x {self.concurrency}{' streamed' if self.is_streamed else ''}"


@dataclass(frozen=True, slots=True)
class Sample:
    """One arm in one cell in one round. Times are to the answer's last byte, of streams to the first of the body."""

    arm: str
    cell: Cell
    calls: int
    rate_qps: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    """CPU time of the arm's process, a request."""
    peak_bytes: int
    load: float
    """The machine's one-minute load average just before."""


async def measure(
    arms: Sequence[Arm], cells: Sequence[Cell], *, rounds: int, seconds: float, progress: Callable[[str], None]
) -> list[Sample]:
    """Every arm in every cell, ``rounds`` times, the arms in turn and in another order each round."""
    samples = []
    for turn in range(rounds):
        for cell in cells:
            shift = turn % len(arms)
            for arm in (*arms[shift:], *arms[:shift]):
                if cell.is_streamed and arm.name in {"plain", "litellm"}:
                    continue  # neither streams what it gets in this form
                samples.append(await _sample(arm, cell, seconds))
                latest = samples[-1]
                progress(f"round {turn + 1}/{rounds}  {cell.name:20} {arm.name:8} {latest.rate_qps:9.1f}/s")
    return samples


async def _sample(arm: Arm, cell: Cell, seconds: float) -> Sample:
    request = request_bytes(arm.path, chat_body(cell.size_bytes, is_streamed=cell.is_streamed))
    load_before = os.getloadavg()[0]
    arm.reset_peak()
    cpu_before = arm.cpu_seconds()
    warm_up = 2
    load = await drive(arm.port, request, concurrency=cell.concurrency, seconds=seconds, warm_up=warm_up)
    times_ms = [(call.first_ns if cell.is_streamed else call.whole_ns) / 1e6 for call in load.calls]
    return Sample(
        arm=arm.name,
        cell=cell,
        calls=len(load.calls),
        rate_qps=len(load.calls) / load.seconds,
        p50_ms=percentile(times_ms, 0.5),
        p99_ms=percentile(times_ms, 0.99),
        cpu_ms=(arm.cpu_seconds() - cpu_before) * 1e3 / (len(load.calls) + warm_up * cell.concurrency),
        peak_bytes=arm.peak_bytes(),
        load=load_before,
    )


def summarise(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """A row an arm and cell: medians over the rounds. What an arm adds is against ``direct`` in the same round."""
    cells = list(dict.fromkeys(sample.cell for sample in samples))
    rows = []
    for cell in cells:
        by_arm: dict[str, list[Sample]] = {}
        for sample in samples:
            if sample.cell == cell:
                by_arm.setdefault(sample.arm, []).append(sample)
        rows += [_row(cell, name, of_arm, by_arm) for name, of_arm in by_arm.items()]
    return rows


def _row(cell: Cell, name: str, of_arm: Sequence[Sample], by_arm: dict[str, list[Sample]]) -> dict[str, Any]:
    def over(other: str) -> float | None:
        if other not in by_arm or other == name:
            return None
        pairs = zip(of_arm, by_arm[other], strict=True)
        return round(statistics.median(mine.rate_qps / theirs.rate_qps for mine, theirs in pairs), 3)

    added = [
        (mine.p50_ms - direct.p50_ms, mine.p99_ms - direct.p99_ms)
        for mine, direct in zip(of_arm, by_arm[DIRECT], strict=True)
    ]
    is_direct = name == DIRECT
    return {
        "cell": cell.name,
        **cell._asdict(),
        "arm": name,
        "calls": sum(sample.calls for sample in of_arm),
        "rate_qps": round(statistics.median(sample.rate_qps for sample in of_arm), 1),
        "rate_over_plain": over("plain"),
        "rate_over_nginx": over("nginx"),
        "p50_ms": round(statistics.median(sample.p50_ms for sample in of_arm), 3),
        "p99_ms": round(statistics.median(sample.p99_ms for sample in of_arm), 3),
        "added_p50_ms": None if is_direct else round(statistics.median(p50 for p50, _ in added), 3),
        "added_p99_ms": None if is_direct else round(statistics.median(p99 for _, p99 in added), 3),
        "cpu_ms": None if is_direct else round(statistics.median(sample.cpu_ms for sample in of_arm), 3),
        "peak_mib": None if is_direct else round(max(sample.peak_bytes for sample in of_arm) / 2**20, 1),
        "load": round(statistics.median(sample.load for sample in of_arm), 1),
    }


def stamp() -> str:
    """Wall time once, to label a result."""
    return time.strftime("%Y-%m-%d %H:%M:%S")

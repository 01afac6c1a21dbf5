"""What the gateway costs beside other ways to the same upstream, in one run on loopback.

    python -m benchmarks.gateway [--quick] [--rounds 5] [--seconds 2] [--litellm] [--out benchmarks/gateway/result.json]

Callers, upstream and each arm are one process each. Arms take turns in every round, so that a noisy minute of the
machine hits all of them; figures are medians over the rounds, and what an arm adds is taken against the direct way
of the same round. Writes the result file and, beside it, a plot (.svg). Ends every process that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvloop
from benchmarks.environments import NotAvailable
from benchmarks.gateway import arms as ways
from benchmarks.gateway.litellm_environment import litellm_program
from benchmarks.gateway.measure import DIRECT, Cell, Sample, measure, stamp, summarise
from benchmarks.gateway.plot import draw

from vision_bench.drafts import write_whole

KB, MB = 1_000, 1_000_000
SIZES = (KB, 1_600_000, 4 * MB)
CONCURRENCIES = (1, 4, 16)
CELLS = [Cell(size, concurrency) for size in SIZES for concurrency in CONCURRENCIES]
CELLS += [Cell(1_600_000, 1, is_streamed=True), Cell(1_600_000, 4, is_streamed=True)]
QUICK_CELLS = [Cell(KB, 1), Cell(1_600_000, 4), Cell(1_600_000, 1, is_streamed=True)]


def main() -> int:
    """Start the arms, measure, write, print."""
    parser = argparse.ArgumentParser(description="Time the gateway beside other ways to the same upstream.")
    parser.add_argument("--quick", action="store_true", help="Three cells, two short rounds: does it still run?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="Of each cell, arm and round.")
    parser.add_argument("--cells", nargs="*", default=[], help="Only cells whose name holds one of these words.")
    parser.add_argument("--arms", nargs="*", default=[], help="Only these arms; direct is always there.")
    parser.add_argument("--litellm", action="store_true", help="LiteLLM's proxy too; builds its environment once.")
    parser.add_argument("--loop", default="auto", help="uvicorn's --loop for ours.")
    parser.add_argument("--http", default="auto", help="uvicorn's --http for ours.")
    parser.add_argument("--out", type=Path, help="Result file; the plot lies beside it as .svg.")
    flags = parser.parse_args()
    cells = [cell for cell in CELLS if not flags.cells or any(word in cell.name for word in flags.cells)]
    if not cells:
        parser.error(f"no cell holds {flags.cells}; they are: {', '.join(repr(cell.name) for cell in CELLS)}")
    if flags.quick:
        cells, flags.rounds, flags.seconds = QUICK_CELLS, 2, 0.3
    missing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="gateway-benchmark-") as scratch, ExitStack() as stack:
        arms = _start(stack, Path(scratch), flags, missing)
        samples = uvloop.run(measure(arms, cells, rounds=flags.rounds, seconds=flags.seconds, progress=_say))
    rows = summarise(samples)
    print(_table(rows))
    for reason in missing:
        print(f"missing: {reason}")
    if flags.out is not None:
        _write(flags.out, rows, samples, flags, missing)
    return 0


def _start(stack: ExitStack, scratch: Path, flags: argparse.Namespace, missing: list[str]) -> list[ways.Arm]:
    port = stack.enter_context(ways.upstream()).port
    arms = [ways.Arm(DIRECT, port, "/v1/chat/completions")]

    def wanted(name: str) -> bool:
        return not flags.arms or name in flags.arms

    if wanted("ours"):
        arms.append(stack.enter_context(ways.ours(port, scratch, loop=flags.loop, http=flags.http)))
    if wanted("plain"):
        arms.append(stack.enter_context(ways.plain(port, scratch)))
    if wanted("nginx"):
        if ways.find_nginx() is None:
            missing.append("nginx: not installed (Debian: apt-get install nginx-light)")
        else:
            arms.append(stack.enter_context(ways.nginx(port, scratch)))
    if flags.litellm:
        try:
            program = litellm_program(_say)
            arms.append(stack.enter_context(ways.litellm(port, scratch, program=program)))
        except (NotAvailable, RuntimeError) as problem:
            missing.append(f"litellm: {problem}")
    return arms


def _table(rows: Sequence[dict[str, Any]]) -> str:
    columns = {
        "cell": "cell",
        "arm": "arm",
        "rate_qps": "req/s",
        "rate_over_plain": "x plain",
        "rate_over_nginx": "x nginx",
        "p50_ms": "p50 ms",
        "added_p50_ms": "+p50 ms",
        "added_p99_ms": "+p99 ms",
        "cpu_ms": "cpu ms",
        "peak_mib": "peak MiB",
        "load": "load",
    }
    lines = [list(columns.values())]
    lines += [["-" if row[key] is None else str(row[key]) for key in columns] for row in rows]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _write(
    out: Path, rows: list[dict[str, Any]], samples: list[Sample], flags: argparse.Namespace, missing: list[str]
) -> None:
    result = {
        "command": "python -m benchmarks.gateway " + " ".join(sys.argv[1:]),
        "taken": stamp(),
        "machine": {"cpus": os.cpu_count(), "cpu": _cpu_name(), "system": platform.platform(terse=True)},
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("uvicorn", "uvloop", "httptools", "fastapi", "httpx")},
        "nginx": _nginx_version(),
        "rounds": flags.rounds,
        "seconds": flags.seconds,
        "missing": missing,
        "rows": rows,
        "samples": [{**asdict(sample), "cell": sample.cell.name} for sample in samples],
    }
    write_whole(out, json.dumps(result, indent=1) + "\n")
    write_whole(out.with_suffix(".svg"), draw(rows))


def _cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _nginx_version() -> str | None:
    program = ways.find_nginx()
    if program is None:
        return None
    told = subprocess.run([program, "-v"], capture_output=True, text=True, check=True)
    return told.stderr.strip().rpartition("/")[2]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Thousands of faults on both sides of the gateway, three times the same, and a look at what they left behind.

    python -m benchmarks.soak [--requests 20000] [--seed 0] [--out benchmarks/soak/result.json] [--quick]

Callers, gateway and upstream are one process each, on loopback. Everything that happens is drawn from the seed. Ends
every process that it started. Exit code 0, or 5 when something that must hold did not; it says what.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvloop
from benchmarks.soak.checks import check, shown, table, unexpected
from benchmarks.soak.plot import draw
from benchmarks.soak.run import CROWD, LANES, SETTINGS, Run, soak

PASSES = 3
QUICK_REQUESTS = 1500
GATE_SAID_NO = 5


def main() -> int:
    """One soak; what was found on stdout."""
    parser = argparse.ArgumentParser(description="Thousands of faults on both sides of the gateway.")
    parser.add_argument("--requests", type=int, default=20_000, help="In all; a third of them in each pass.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REQUESTS} requests: does it still run?")
    parser.add_argument("--out", type=Path, help="Result file; the plot lies beside it as .svg.")
    parser.add_argument("--log", type=Path, help="Keep the gateway's log here.")
    flags = parser.parse_args()
    if flags.requests < PASSES:
        parser.error(f"--requests {flags.requests}: at least {PASSES}, one a pass")
    requests = QUICK_REQUESTS if flags.quick else flags.requests
    # Callers that left without a word keep their sockets to the end of a pass.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    began = time.monotonic()
    run = uvloop.run(soak(requests=requests, passes=PASSES, seed=flags.seed, crowd=CROWD, say=_say))
    seconds = time.monotonic() - began
    checks = check(run)
    for one in checks:
        print(f"{'n/a ' if one.holds is None else 'ok  ' if one.holds else 'FAIL'} {one.name}: {one.found}")
    print(f"{sum(len(done.seen) for done in run.passes)} requests, {seconds:.0f} s")
    if flags.out is not None:
        _write(flags.out, run, _result(run, seconds, flags.seed))
    if flags.log is not None:
        flags.log.write_text(run.log)
    failed = [one.name for one in checks if one.holds is False]
    if failed:
        _say(f"did not hold: {'; '.join(failed)}")
    return GATE_SAID_NO if failed else 0


def _result(run: Run, seconds: float, seed: int) -> dict[str, Any]:
    return {
        "command": "python -m benchmarks.soak " + " ".join(sys.argv[1:]),
        "machine": {"cpus": os.cpu_count(), "cpu": _cpu_name(), "system": platform.platform(terse=True)},
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("uvicorn", "uvloop", "httptools", "fastapi", "starlette")},
        "seed": seed,
        "seconds": round(seconds, 1),
        "lanes": LANES,
        "settings": SETTINGS,
        "requests": sum(len(done.seen) for done in run.passes),
        "checks": [asdict(one) for one in check(run)],
        "passes": [
            {
                "requests": len(done.seen),
                "seconds": round(done.seconds, 1),
                "settled_mib": round(done.settled_bytes / 2**20, 1),
                "open_files": done.open_files,
                "half_open": done.half_open,
                "callers_that_left": sum(bool(one.ask.leaves) for one in done.seen),
            }
            for done in run.passes
        ],
        "planned_by_observed": table(run),
        "unexpected": shown(unexpected(run)),
        "memory": [[round(at, 1), round(size / 2**20, 1), number] for at, size, number in run.samples],
    }


def _write(out: Path, run: Run, result: dict[str, Any]) -> None:
    picture = draw(run.samples, result["planned_by_observed"])
    for path, text in ((out, json.dumps(result, indent=1) + "\n"), (out.with_suffix(".svg"), picture)):
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(text)
        temporary.replace(path)


def _cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""What ``vision-bench run`` reports beside what really happened, in one run on loopback.

    python -m benchmarks.truth [--quick] [--rounds 3] [--seconds 20] [--out benchmarks/truth/result.json]
    python -m benchmarks.truth --parts cells,traps,wire,ceiling --rates 20,100 --servers lean
    python -m benchmarks.truth --peers aiperf,guidellm,vllm       # and other tools, in the same cells and traps

The client is the verb as a user runs it, a process of its own; its CPU time and memory are the kernel's counts. Two
servers: ``lean``, which stamps the first byte of a request and every token's write and costs little, and the declared
engine of the package. Beside them the floor: the least a client can do here. Ends every process that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from benchmarks.truth import bar, ceiling, peer_runs, traps, wire
from benchmarks.truth.cells import median_cell, run_cell
from benchmarks.truth.peers import PEERS
from benchmarks.truth.processes import ROOT, Server, client_cores, declared, environment, lean
from benchmarks.truth.table import show

from vision_bench.bench.environment import describe
from vision_bench.bench.rundir import write_json
from vision_bench.stats import percentile

Json = dict[str, Any]

PARTS = ("cells", "traps", "wire", "ceiling")
RATES = (20.0, 50.0, 100.0, 200.0)
MAX_PEER_RATE = 100.0


def main() -> int:
    """Measure, judge, print, write. 0 when everything that must be right is, 3 otherwise."""
    parser = argparse.ArgumentParser(description="What the benchmark reports beside what really happened.")
    parser.add_argument("--quick", action="store_true", help="50/s for 8 s, the traps, the wire cases: two minutes.")
    parser.add_argument("--rounds", type=int, default=3, help="Of each cell; the middle one is given.")
    parser.add_argument("--seconds", type=float, default=20.0, help="Of each cell.")
    parser.add_argument("--rates", default=",".join(f"{rate:g}" for rate in RATES))
    parser.add_argument("--servers", default="lean,declared")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--peers", default="", help=f"Other tools beside it, of {','.join(PEERS)}.  [default: none]")
    parser.add_argument("--peer-seconds", type=float, default=10.0, help="Of each cell of another tool.")
    parser.add_argument("--scratch", type=Path, help="Folder for the run folders.  [default: a temporary one]")
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    parts, peers = flags.parts.split(","), [name for name in flags.peers.split(",") if name]
    if unknown := set(peers) - set(PEERS):
        parser.error(f"no tool is called {', '.join(sorted(unknown))}; they are {', '.join(PEERS)}")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; they are {', '.join(PARTS)}")
    rates = [float(rate) for rate in flags.rates.split(",")]
    if flags.quick:
        rates, flags.rounds, flags.seconds, parts = [50.0], 1, 8.0, [part for part in parts if part != "ceiling"]
    result: Json = {
        "machine": {"system": platform.system(), "python": platform.python_version(), "processors": os.cpu_count()},
        "packages": describe()["packages"],
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load_before": round(os.getloadavg()[0], 2),
        "floor": [],
        "cells": [],
        "traps": [],
        "wire": None,
        "ceiling": None,
        "peers": None,
    }
    with tempfile.TemporaryDirectory(prefix="truth-", dir=flags.scratch) as scratch:
        _measure(result, Path(scratch), parts, rates, flags)
        if peers:
            peer_rates = [rate for rate in rates if rate <= MAX_PEER_RATE] if "cells" in parts else []
            result["peers"] = peer_runs.measure(
                peers, peer_rates, flags.peer_seconds, Path(scratch), _say, with_traps="traps" in parts
            )
    result["load_after"] = round(os.getloadavg()[0], 2)
    peer_cells = result["peers"]["cells"] if result["peers"] else []
    result["bar"] = bar.judge(result["cells"], result["traps"], peers=peer_cells)
    show(result)
    if flags.out is not None:
        write_json(flags.out, result)
    is_right = all(row["is_met"] is not False for row in result["bar"]) and all(t["is_right"] for t in result["traps"])
    return 0 if is_right and not (result["wire"] or {}).get("wrong") else 3


def _measure(
    result: Json, scratch: Path, parts: Sequence[str], rates: Sequence[float], flags: argparse.Namespace
) -> None:
    if "cells" in parts:
        loads = [(rate, "constant") for rate in rates]
        loads += [(rate, "poisson") for rate in rates if rate in (50.0, 100.0)]
        for name in flags.servers.split(","):
            for rate, arrivals in loads:
                _say(f"{name}: {rate:g}/s {arrivals}")
                rounds = [
                    _cell(name, scratch / f"{name}-{rate:g}-{arrivals}-{number}", rate, arrivals, flags.seconds)
                    for number in range(flags.rounds)
                ]
                result["cells"].append(median_cell(rounds))
        for rate in rates:
            _say(f"floor: {rate:g}/s")
            result["floor"].append(_floor(rate, flags.seconds))
    if "traps" in parts:
        for trap in traps.TRAPS:
            _say(f"trap: {trap.__name__}")
            result["traps"].append(trap(scratch))
    if "wire" in parts:
        _say("wire cases")
        result["wire"] = wire.play(scratch)
    if "ceiling" in parts:
        _say("ceiling")
        result["ceiling"] = ceiling.find(scratch)


def _cell(name: str, folder: Path, rate: float, arrivals: str, seconds: float) -> Json:
    folder.mkdir()
    with _server(name) as server:
        return run_cell(server, folder, "run", rate, arrivals, seconds)


def _server(name: str) -> AbstractContextManager[Server]:
    return lean() if name == "lean" else declared()


def _floor(rate: float, seconds: float) -> Json:
    """The plain client against the lean server."""
    with lean() as server:
        command = [sys.executable, "-m", "benchmarks.truth.floor", server.url, str(rate), str(seconds)]
        with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
            os.sched_setaffinity(process.pid, client_cores())
            seen = json.loads(process.communicate()[0])
        true = [(one["first_token_ns"] - one["first_byte_ns"]) / 1e6 for one in server.truth().values()]
    errors = {
        f"error_{name}": round(percentile(seen["ttft_ms"], fraction) - percentile(true, fraction), 4)
        for name, fraction in (("p50", 0.5), ("p99", 0.99))
    }
    count = len(seen["ttft_ms"])
    return {"rate": rate, "count": count, **errors, "cpu_ms_per_request": round(seen["cpu_seconds"] * 1e3 / count, 2)}


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

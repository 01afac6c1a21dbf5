"""How far a declared engine is from the times that it declares: by its own word and by its client's, over a socket.

    python benchmarks/engine/timing.py [--rounds 8] [--lanes 1 4 8] [--out benchmarks/engine/result.json]

Whatever comes out is printed and written, with the load of the machine before and after: on a busy one the
deviations are the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from vision_bench.bench.rundir import write_json
from vision_bench.stats import percentile

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
PREPROCESS_MS, PREFILL_MS, DECODE_MS, TOKENS = 40, 60, 10, 32
TTFT_MS = float(PREPROCESS_MS + PREFILL_MS)
E2E_MS = TTFT_MS + DECODE_MS * (TOKENS - 1)
START_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Seen:
    """One streamed request as its client saw it, ms from sending."""

    ttft_ms: float
    e2e_ms: float
    gaps_ms: tuple[float, ...]


def main() -> int:
    """Measure each number of lanes, print, write."""
    parser = argparse.ArgumentParser(description="Deviations of a declared engine from what it declares.")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    load_before = os.getloadavg()[0]
    runs = [asyncio.run(measure(lanes, flags.rounds)) for lanes in flags.lanes]
    result = {
        "declared": {
            "preprocess_ms": PREPROCESS_MS,
            "prefill_ms": PREFILL_MS,
            "decode_ms": DECODE_MS,
            "tokens": TOKENS,
        },
        "rounds": flags.rounds,
        "machine": {"system": platform.system(), "python": platform.python_version(), "processors": os.cpu_count()},
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
        "deviation_ms": [entry for run in runs for entry in run],
    }
    for entry in result["deviation_ms"]:
        words = "  ".join(f"{name} {entry[name]:7.3f}" for name in ("p50", "p95", "max"))
        print(f"{entry['lanes']} at a time  {entry['what']:38} n {entry['count']:5}  {words}")
    print(f"load {load_before:.2f} before, {result['load_after']:.2f} after; {os.cpu_count()} processors")
    if flags.out:
        write_json(flags.out, result)
    return 0


async def measure(lanes: int, rounds: int) -> list[dict[str, Any]]:
    """Streamed requests, ``lanes`` at a time, then as many whole ones; absolute deviations."""
    with engine() as url:
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
            await stream(client)  # opens the connection, imports what is imported late
            await truth_of(client, 1)
            seen = [one for _ in range(rounds) for one in await asyncio.gather(*[stream(client) for _ in range(lanes)])]
            streamed = await truth_of(client, rounds * lanes)
            for _ in range(rounds):
                await asyncio.gather(*[client.post(CHAT, json=HELLO) for _ in range(lanes)])
            whole = await truth_of(client, rounds * lanes)
    deviations = {
        "engine: TTFT": [abs(record["ttft_ms"] - TTFT_MS) for record in streamed],
        "engine: end to end": [abs(record["e2e_ms"] - E2E_MS) for record in streamed],
        "engine: end to end, whole answer": [abs(record["e2e_ms"] - E2E_MS) for record in whole],
        "client: gap between tokens": [abs(gap - DECODE_MS) for one in seen for gap in one.gaps_ms],
        "client: TTFT (with the socket)": [abs(one.ttft_ms - TTFT_MS) for one in seen],
        "client: end to end (with the socket)": [abs(one.e2e_ms - E2E_MS) for one in seen],
    }
    return [{"lanes": lanes, "what": what, **summary(values)} for what, values in deviations.items()]


def summary(values: list[float]) -> dict[str, float]:
    """Count, median, 95th percentile and largest, ms."""
    p95 = percentile(values, 0.95)
    return {"count": len(values), "p50": round(median(values), 3), "p95": round(p95, 3), "max": round(max(values), 3)}


@contextmanager
def engine() -> Iterator[str]:
    """The engine in a process of its own, so that the client's work does not hold up its clock; its root URL."""
    times = {"preprocess": PREPROCESS_MS, "encoder": 0, "prefill": PREFILL_MS, "decode": DECODE_MS}
    flags = [word for name, ms in times.items() for word in (f"--{name}-ms", str(ms))]
    command = [sys.executable, "-m", "vision_bench.cli", "engine", "--model", "declared", "--port", "0"]
    with subprocess.Popen([*command, "--tokens", str(TOKENS), *flags], stderr=subprocess.PIPE, text=True) as process:
        try:
            found = re.search(r"(http://\S+)/v1", process.stderr.readline() if process.stderr else "")
            if not found:
                raise SystemExit("the engine did not say where it answers")
            wait_until_healthy(found[1])
            yield found[1]
        finally:
            process.kill()


def wait_until_healthy(url: str) -> None:
    """Until it answers, or START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    with httpx.Client(base_url=url, trust_env=False) as client:
        while True:
            try:
                client.get("/health")
                return
            except httpx.TransportError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


async def stream(client: httpx.AsyncClient) -> Seen:
    """One request; an event with text is a token."""
    start_ns = time.monotonic_ns()
    times: list[int] = []
    async with client.stream("POST", CHAT, json=HELLO | {"stream": True}) as response:
        async for line in response.aiter_lines():
            times += [time.monotonic_ns()] * ('"delta":{"content"' in line)
    if len(times) != TOKENS:
        raise SystemExit(f"{len(times)} tokens came, not {TOKENS}")
    gaps = tuple((later - earlier) / 1e6 for earlier, later in pairwise(times))
    return Seen((times[0] - start_ns) / 1e6, (times[-1] - start_ns) / 1e6, gaps)


async def truth_of(client: httpx.AsyncClient, count: int) -> list[dict[str, Any]]:
    """What the engine says it kept of ``count`` requests; forgotten there. A line comes just after its answer."""
    lines: list[str] = []
    while len(lines) < count:
        lines = (await client.get("/truth")).text.splitlines()
    await client.request("DELETE", "/truth")
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
    sys.exit(main())

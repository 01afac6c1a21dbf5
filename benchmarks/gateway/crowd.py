"""A crowd at the door: many large requests at once, and /healthz asked all the while.

    python -m benchmarks.gateway.crowd [--requests 2000] [--size 1600000]

Upstream, gateway, crowd and the one who asks are a process each. Says how many were served, how long /healthz took,
and how much memory the gateway had at most.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop
from benchmarks.gateway import arms as ways
from benchmarks.gateway.load import Caller, chat_body, request_bytes

from vision_bench.stats import percentile

PAUSE_SECONDS = 0.01


def main() -> int:
    """One crowd; one JSON object on stdout."""
    parser = argparse.ArgumentParser(description="Serve many large requests at once, and ask for health meanwhile.")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--size", type=int, default=1_600_000, help="Bytes of each body.")
    flags = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with (
        tempfile.TemporaryDirectory(prefix="gateway-crowd-") as scratch,
        ways.upstream() as stub,
        ways.ours(stub.port, Path(scratch)) as arm,
    ):
        idle_bytes = arm.peak_bytes()
        results: multiprocessing.Queue[int | str] = multiprocessing.Queue()
        crowd = multiprocessing.Process(target=_crowd, args=(arm.port, flags.requests, flags.size, results))
        began = time.monotonic()
        crowd.start()
        waits_ms = list(_ask(arm.port, crowd))
        crowd.join()
        served = results.get(timeout=10)
        told = {
            "requests": flags.requests,
            "served": served,
            "seconds": round(time.monotonic() - began, 1),
            "healthz_asked": len(waits_ms),
            "healthz_p50_ms": round(percentile(waits_ms, 0.5), 1),
            "healthz_p99_ms": round(percentile(waits_ms, 0.99), 1),
            "healthz_worst_ms": round(max(waits_ms), 1),
            "idle_mib": round(idle_bytes / 2**20),
            "peak_mib": round(arm.peak_bytes() / 2**20),
            "load": round(os.getloadavg()[0], 1),
        }
    print(json.dumps(told))
    return 0 if served == flags.requests else 3


def _ask(port: int, crowd: multiprocessing.Process) -> Iterator[float]:
    """Milliseconds of one /healthz after another while the crowd is there."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while crowd.is_alive():
        began_ns = time.monotonic_ns()
        connection.request("GET", "/healthz")
        if connection.getresponse().read() != b'{"ok":true}':
            raise RuntimeError("/healthz is not well")
        yield (time.monotonic_ns() - began_ns) / 1e6
        time.sleep(PAUSE_SECONDS)


def _crowd(port: int, requests: int, size_bytes: int, results: multiprocessing.Queue[int | str]) -> None:
    try:
        results.put(uvloop.run(_all_at_once(port, requests, request_bytes("/chat", chat_body(size_bytes)))))
    except Exception as problem:
        results.put(repr(problem))


async def _all_at_once(port: int, requests: int, request: bytes) -> int:
    """How many got a 200; anything else raises."""
    loop = asyncio.get_running_loop()

    async def one() -> None:
        _, caller = await loop.create_connection(Caller, "127.0.0.1", port)
        await caller.call(request)
        caller.close()

    await asyncio.gather(*(one() for _ in range(requests)))
    return requests


if __name__ == "__main__":
    sys.exit(main())

"""A short run against an engine whose times are declared, before a campaign: how far this client is off, here and now.

The engine runs in a process of its own, as the server of a campaign does; its truth is on the same clock as our stamps.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from vision_bench.bench.arrivals import Process
from vision_bench.bench.chat.own_error import own_error
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run
from vision_bench.bench.rundir import read_records
from vision_bench.bench.session import Status
from vision_bench.errors import ConnectFailed

Json = dict[str, Any]

TTFT_MS, ITL_MS, TOKENS = 50, 5, 64
RATE, REQUESTS, WARM_UP = 50.0, 400, 20
"""400 answers carry a p99."""
START_SECONDS, STOP_SECONDS = 60.0, 10.0
WORKLOAD = f"""\
name = "calibration"
kind = "chat"
model = "qwen"
prompt = "What happens?"
media = "none"
max_tokens = {TOKENS}
"""


async def calibrate(
    *, rate: float = RATE, requests: int = REQUESTS, on_status: Callable[[Status], None] | None = None
) -> Json:
    """Errors of this client on this machine now, as the manifest keeps them: reported less true, ms.

    Raises:
        ConnectFailed: the engine did not start.
    """
    with tempfile.TemporaryDirectory(prefix="vision-bench-calibration-") as scratch:
        folder = Path(scratch)
        (folder / "workload.toml").write_text(WORKLOAD, encoding="utf-8")
        plan = LoadPlan(rates=[rate], concurrency=(), arrivals=Process("constant"), max_requests=requests)
        async with _engine() as url:
            summary = await run(
                RunOptions(folder / "workload.toml", url, folder / "run", plan, warm_up=WARM_UP), on_status=on_status
            )
            truth = (await _get(f"{url}/truth")).splitlines()
        (step,) = summary["steps"]
        records = [record for record in read_records(folder / "run", ChatRecord) if record.step == step["step"]]
        told = own_error(records, map(json.loads, truth))
    return {
        "declared": {"ttft_ms": TTFT_MS, "itl_ms": ITL_MS, "tokens": TOKENS},
        "rate": rate,
        "load_average": round(os.getloadavg()[0], 2),
        "lag_p99_ms": step["lag_ms"]["p99"],
        "verdict": step["verdict"],
        "verdict_reason": step["verdict_reason"],
        **told,
    }


@asynccontextmanager
async def _engine() -> AsyncIterator[str]:
    """The declared engine on a free port of loopback: its root URL."""
    times = ("--preprocess-ms", "0", "--encoder-ms", "0", "--prefill-ms", str(TTFT_MS), "--decode-ms", str(ITL_MS))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vision_bench.cli", "engine", "--model", "declared", "--port", "0"),
        *times,
        *("--tokens", str(TOKENS), "--max-num-seqs", "1024"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None  # noqa: S101 - a pipe was asked for
    drain: asyncio.Task[bytes] | None = None
    try:
        said = await asyncio.wait_for(process.stderr.readline(), START_SECONDS)
        found = re.search(r"(http://\S+)/v1", said.decode(errors="replace"))
        if found is None:
            raise ConnectFailed(f"the declared engine did not start: {said.decode(errors='replace').strip()[:300]}")
        drain = asyncio.create_task(process.stderr.read())
        await _until_healthy(found[1])
        yield found[1]
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()
        if drain is not None:
            await drain


async def _until_healthy(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            await _get(f"{url}/health")
            return
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


async def _get(url: str) -> str:
    async with httpx.AsyncClient(timeout=START_SECONDS, trust_env=False) as client:
        return (await client.get(url)).text

"""A chat target on a loopback port, and one request through it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from vision_bench.bench.chat.pool import Pool
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.target import ChatTarget, read_address
from vision_bench.bench.chat.workload import prepare
from vision_bench.bench.clock import MonotonicClock
from vision_bench.bench.workload import read_workload

SMALLEST: dict[str, Any] = {
    "name": "smallest",
    "kind": "chat",
    "model": "qwen",
    "prompt": "What happens?",
    "media": "none",
    "max_tokens": 64,
}


def workload_file(folder: Path, **values: Any) -> Path:
    """A workload file with ``values`` over the smallest one's."""
    path = folder / "workload.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in (SMALLEST | values).items()), "utf-8")
    return path


class Shot:
    """Sends requests through one target, each with the next ordinal."""

    def __init__(self, target: ChatTarget, pool: Pool, clock: MonotonicClock) -> None:
        self.target = target
        self.pool = pool
        self.clock = clock
        self.count = 0

    async def __call__(self) -> ChatRecord:
        now_ns = self.clock.now_ns()
        record = ChatRecord(step=1, index=self.count, ordinal=self.count, due_ns=now_ns, dsp_ns=now_ns)
        self.count += 1
        await self.target.send(record)
        return record


@asynccontextmanager
async def shooting(
    url: str,
    folder: Path,
    *,
    timeout_seconds: float = 20,
    batch_size: int | None = None,
    api_key: str | None = None,
    **values: Any,
) -> AsyncIterator[Shot]:
    """Requests to ``url`` with the workload of ``workload_file``."""
    address = read_address(url)
    prepared = prepare(
        read_workload(workload_file(folder, **values)),
        can_stream=address.wire != "batch",
        salt="0",
        batch_size=batch_size,
    )
    pool = Pool(address.host, address.port, is_secure=address.is_secure, connect_timeout_seconds=2)
    with MonotonicClock() as clock:
        async with pool:
            target = ChatTarget(
                address,
                pool,
                prepared.bodies,
                clock=clock,
                timeout_seconds=timeout_seconds,
                run_id="test",
                api_key=api_key,
            )
            yield Shot(target, pool, clock)

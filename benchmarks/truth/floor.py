"""The least a client can do, written plainly: what this machine allows at all.

    python -m benchmarks.truth.floor URL RATE SECONDS

Standard library, one process, open loop at constant gaps. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

BODY = b'{"model":"qwen","messages":[{"role":"user","content":"What happens?"}],"max_tokens":64,"stream":true}'


async def ask(idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]], host: str, port: int, name: str) -> float:
    """One request; ms from the first byte written to the first event that came."""
    reader, writer = idle.pop() if idle else await asyncio.open_connection(host, port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: {name}\r\nContent-Length: {len(BODY)}\r\n\r\n"
    )
    start_ns = time.monotonic_ns()
    writer.write(head.encode() + BODY)
    first_ns = 0
    while True:
        data = await reader.read(65536)
        if not first_ns and b"data:" in data:
            first_ns = time.monotonic_ns()
        if not data or data.endswith(b"0\r\n\r\n"):
            break
    idle.append((reader, writer))
    return (first_ns - start_ns) / 1e6


async def run(url: str, rate: float, seconds: float) -> None:
    """All of it."""
    parts = urlsplit(url)
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    tasks = []
    start = time.monotonic() + 0.05
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
        tasks.append(asyncio.create_task(ask(idle, parts.hostname or "", parts.port or 80, f"floor-{number}")))
    times_ms = await asyncio.gather(*tasks)
    print(json.dumps({"ttft_ms": times_ms, "cpu_seconds": time.process_time()}))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))

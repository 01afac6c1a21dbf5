"""A declared engine keeps what it declares, seen by a client over a socket; with bounds for any machine.

How well it is kept on a quiet machine is measured by benchmarks/engine/timing.py.
"""

from __future__ import annotations

import asyncio
import json
import time
from itertools import pairwise

import httpx
import pytest
from tests.integration.engine_rig import CHAT, HELLO, engine_process

from vision_bench.stats import percentile

pytestmark = pytest.mark.heavy

TOKENS = 32
GAP_MS = 20.0
TTFT_MS = 100.0
E2E_MS = TTFT_MS + GAP_MS * (TOKENS - 1)
DECLARED = ("--tokens", str(TOKENS), "--preprocess-ms", "40", "--encoder-ms", "0", "--prefill-ms", "60")
ROUNDS = 8
BOUND_MS = 25.0
"""A busy machine is late with most requests, though not with all: the quarter that was least late is held to this. A
step too many, or a stage counted twice, is later in every one."""


def least_late(values: list[float]) -> float:
    """The first quartile."""
    return percentile(values, 0.25)


async def stream(client: httpx.AsyncClient) -> list[float]:
    """Gaps between the tokens of one answer, ms."""
    times: list[int] = []
    async with client.stream("POST", CHAT, json=HELLO | {"stream": True}) as response:
        async for line in response.aiter_lines():
            times += [time.monotonic_ns()] * ('"delta":{"content"' in line)
    return [(later - earlier) / 1e6 for earlier, later in pairwise(times)]


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_declared_times_are_kept(lanes: int, is_streamed: bool) -> None:
    """TTFT, gaps and end to end are what was declared, within a bound, and nothing comes before its time."""
    with engine_process(*DECLARED, "--decode-ms", str(GAP_MS)) as (url, _):
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
            gaps: list[float] = []
            for _ in range(ROUNDS):
                if is_streamed:
                    for one in await asyncio.gather(*(stream(client) for _ in range(lanes))):
                        assert len(one) == TOKENS - 1
                        gaps += one
                else:
                    await asyncio.gather(*(client.post(CHAT, json=HELLO) for _ in range(lanes)))
            while len(lines := (await client.get("/truth")).text.splitlines()) < ROUNDS * lanes:
                await asyncio.sleep(0.01)  # a line comes just after its answer
    truth = [json.loads(line) for line in lines]
    assert min(record["ttft_ms"] for record in truth) >= TTFT_MS - 1
    assert min(record["e2e_ms"] for record in truth) >= E2E_MS - 1
    assert least_late([record["ttft_ms"] for record in truth]) < TTFT_MS + BOUND_MS
    assert least_late([record["e2e_ms"] for record in truth]) < E2E_MS + BOUND_MS
    assert not gaps or least_late([abs(gap - GAP_MS) for gap in gaps]) < GAP_MS / 2

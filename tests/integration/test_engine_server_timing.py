"""Whether a declared engine keeps what it declares, seen by a client over a socket. Run alone, on a quiet machine.

``pytest -m heavy -s tests/integration/test_engine_server_timing.py`` prints the deviations.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import httpx
import pytest
from tests.integration.engine_rig import CHAT, HELLO, engine_process

from vision_bench.engine.chat.declared.settings import Latencies
from vision_bench.stats import percentile

pytestmark = pytest.mark.heavy

DECLARED = Latencies(preprocess_ms=40, encoder_ms=0, prefill_ms=60, decode_ms=10)
TOKENS = 32
TTFT_MS = 100.0
E2E_MS = TTFT_MS + 10 * (TOKENS - 1)


@dataclass(frozen=True, slots=True)
class Seen:
    """One streamed request as its client saw it, ms from sending."""

    ttft_ms: float
    e2e_ms: float
    gaps_ms: tuple[float, ...]


@contextmanager
def engine() -> Iterator[httpx.AsyncClient]:
    """The engine in a process of its own, so that the client's work does not hold up its clock."""
    names = ("preprocess_ms", "encoder_ms", "prefill_ms", "decode_ms")
    times = [word for name in names for word in (f"--{name.replace('_', '-')}", str(getattr(DECLARED, name)))]
    with engine_process("--tokens", str(TOKENS), *times) as (url, _):
        yield httpx.AsyncClient(base_url=url, timeout=30, trust_env=False)


async def stream(client: httpx.AsyncClient) -> Seen:
    """One request; an event with text is a token."""
    start_ns = time.monotonic_ns()
    times: list[int] = []
    async with client.stream("POST", CHAT, json=HELLO | {"stream": True}) as response:
        async for line in response.aiter_lines():
            now_ns = time.monotonic_ns()
            times += [now_ns] * ('"delta":{"content"' in line)
    gaps = tuple((later - earlier) / 1e6 for earlier, later in pairwise(times))
    return Seen((times[0] - start_ns) / 1e6, (times[-1] - start_ns) / 1e6, gaps)


async def truth_of(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await client.get("/truth")).text.splitlines()]


def show(what: str, values: list[float]) -> None:
    """A line of deviations in ms: median, 95th percentile, largest."""
    p95 = percentile(values, 0.95)
    print(f"{what:38} n={len(values):4} p50={median(values):7.3f} p95={p95:7.3f} max={max(values):7.3f}")


def stolen_share(seconds: float = 0.3) -> float:
    """Share of time in which a process that never sleeps does not run here: others have the machine."""
    start = before = time.monotonic()
    stolen = 0.0
    while before - start < seconds:
        now = time.monotonic()
        if now - before > 0.0005:
            stolen += now - before
        before = now
    return stolen / (before - start)


async def held_once(measure: Callable[[], Awaitable[bool]]) -> None:
    """The claim is about a quiet machine: one of three rounds must hold it; none on a noisy machine proves nothing."""
    shares: list[float] = []
    for _ in range(3):
        shares.append(stolen_share())
        if await measure():
            return
        shares.append(stolen_share())
    if max(shares) > 0.02:
        pytest.skip(f"needs a quiet machine; others take up to {max(shares):.0%} of a core here")
    pytest.fail("the declared times were not kept on a quiet machine; the deviations are printed above")


@pytest.mark.parametrize("lanes", [1, 4, 8])
async def test_streamed_requests_keep_their_times(lanes: int) -> None:
    """Median deviation of TTFT, gaps and end to end is under 2 ms, by the engine's word and by the client's."""

    async def measure() -> bool:
        with engine() as client:
            await stream(client)
            await client.request("DELETE", "/truth")
            seen = [one for _ in range(8) for one in await asyncio.gather(*(stream(client) for _ in range(lanes)))]
            truth = await truth_of(client)
            await client.aclose()
        assert all(len(one.gaps_ms) == TOKENS - 1 for one in seen)
        deviations = {
            "engine: TTFT": [abs(record["ttft_ms"] - TTFT_MS) for record in truth],
            "engine: end to end": [abs(record["e2e_ms"] - E2E_MS) for record in truth],
            "client: gap between tokens": [abs(gap - DECLARED.decode_ms) for one in seen for gap in one.gaps_ms],
            "client: TTFT (with the socket)": [abs(one.ttft_ms - TTFT_MS) for one in seen],
            "client: end to end (with the socket)": [abs(one.e2e_ms - E2E_MS) for one in seen],
        }
        print(f"\n{lanes} at a time, deviation in ms")
        for what, values in deviations.items():
            show(what, values)
        return all(median(values) < 2 for what, values in deviations.items() if "socket" not in what)

    await held_once(measure)


async def test_whole_answers_end_on_time() -> None:
    """Not streamed: the last token is as exact as if it were."""

    async def measure() -> bool:
        with engine() as client:
            await client.post(CHAT, json=HELLO)
            await client.request("DELETE", "/truth")
            for _ in range(8):
                await client.post(CHAT, json=HELLO)
            late = [abs(record["e2e_ms"] - E2E_MS) for record in await truth_of(client)]
            await client.aclose()
        print()
        show("engine: end to end, whole answer", late)
        return median(late) < 2

    await held_once(measure)

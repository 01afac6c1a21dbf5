"""How long real vLLM took for one request, stage by stage, by its own metrics."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import httpx
from tests.vllm.server import VllmServer

from vision_bench.wire.prometheus import Page, difference, read_page

TTFT = "vllm:time_to_first_token_seconds"
QUEUE = "vllm:request_queue_time_seconds"
PREFILL = "vllm:request_prefill_time_seconds"


@dataclass(frozen=True, slots=True)
class Stages:
    """Milliseconds of one request."""

    ttft_ms: float
    queue_ms: float
    prefill_ms: float

    @property
    def before_engine_ms(self) -> float:
        """Decoding and preprocessing: vLLM has no metric for it, but its TTFT begins before it and the queue after."""
        return self.ttft_ms - self.queue_ms - self.prefill_ms


def ask(client: httpx.Client, server: VllmServer, body: dict[str, Any]) -> tuple[str, Stages]:
    """Send one request, alone; its answer, and what the server's metrics say of it."""
    before = page(server)
    reply = client.post(f"{server.base_url}/chat/completions", json=body)
    assert reply.is_success, reply.text
    # The last of them is written when the request ends, which may be after its answer has left.
    until = time.monotonic() + 30
    while (found := difference(before, page(server))).histograms[PREFILL].count < 1 and time.monotonic() < until:
        time.sleep(0.05)
    ttft, queue, prefill = (1e3 * found.histograms[name].total for name in (TTFT, QUEUE, PREFILL))
    return reply.json()["choices"][0]["message"]["content"], Stages(ttft, queue, prefill)


def page(server: VllmServer) -> Page:
    """Its metrics now."""
    return read_page(server.get("/metrics").decode())

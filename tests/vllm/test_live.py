"""Questions about a live stream on real vLLM: it looks at a frame and at a segment, and receipts say what it told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.integration.live_rig import jpeg, live_gateway, new_stream
from tests.integration.test_live_push import pushing
from tests.vllm.server import TRUST, VllmServer, VllmServers

from vision_bench.client.live import LiveClient
from vision_bench.client.live_answer import LiveAnswer
from vision_bench.client.live_question import Latest, LiveQuestion, Trailing, Window

FRAMES, SECONDS_BETWEEN = 9, 0.25
ALL = Trailing(60, max_fps=1000)
WIDTH, HEIGHT = 256, 192


@pytest.fixture(scope="module")
def server(vllm_server: VllmServers) -> VllmServer:
    """As test_load_agreement's, so that one start serves both."""
    return vllm_server.get(TRUST, "--enable-per-request-metrics", model="qwen", max_model_len=8192)


async def _ask(server: VllmServer, *windows: Window) -> list[LiveAnswer]:
    """Answers about a stream of nine pictures in two seconds, each of another grey."""
    async with live_gateway(server.base_url) as rig:
        stream = await new_stream(rig)
        async with pushing(stream) as socket:
            for index in range(FRAMES):
                await asyncio.sleep(SECONDS_BETWEEN)
                await socket.send(jpeg(60 + 15 * index, width=WIDTH, height=HEIGHT))
                assert json.loads(await socket.recv())["type"] == "stored"
            async with LiveClient(rig.url) as client:
                return [await client.ask(stream["id"], _question(window)) for window in windows]


def _question(window: Window) -> LiveQuestion:
    return LiveQuestion("What is seen?", window, max_tokens=4, temperature=0.0)


async def test_a_segment_costs_what_its_frames_cost(server: VllmServer) -> None:
    """A frame, a frame a second, and all: vLLM counts pictures by their tokens, more for more of them, and the receipt
    has them with the stages that it told."""
    frame, slow, fast = await _ask(server, Latest(), Trailing(60, max_fps=1), ALL)
    receipts: list[Any] = [answer.receipt for answer in (frame, slow, fast)]
    one, few, every = (len(receipt.frames) for receipt in receipts)
    assert (one, every) == (1, FRAMES)
    assert 1 < few < FRAMES - 1
    tokens = [receipt.visual_tokens for receipt in receipts]
    assert 0 < tokens[0] <= tokens[1] < tokens[2]
    sizes = [receipt.payload_bytes for receipt in receipts]
    assert sizes[0] < sizes[1] < sizes[2]
    for answer, receipt in zip((frame, slow, fast), receipts, strict=True):
        assert {"upstream_queue", "upstream_prefill", "upstream_decode"} <= set(receipt.reported_ms)
        stages = {one.stage: one for one in answer.stages()}
        assert stages["upstream_preprocess"].problem == "no_stamp"
        assert stages["upstream_prefill"].ms <= stages["first_token"].ms + 1.0

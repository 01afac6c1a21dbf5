"""A question never holds a stream up: who asks slowly is told of what is new."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from tests.integration.live_rig import live_gateway, live_of, new_stream, stream_of
from tests.integration.stub_upstream import answers, stub_upstream
from tests.integration.test_live_questions import about
from tests.integration.whip_camera import camera


def resident_bytes() -> int:
    """What this process holds in memory."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.heavy)])
async def test_a_slow_model_never_makes_the_newest_frame_older(seconds: int) -> None:
    """A camera sends 30 frames a second, the model takes a second an answer: whenever a question is asked, the newest
    frame has not been held for half a second, and memory grows by less than 100 MB."""
    settings = {"live_ring_bytes": 8 * 2**20}
    async with stub_upstream(answers(delay_seconds=1.0)) as upstream, live_gateway(upstream, **settings) as rig:
        stream = await new_stream(rig)
        ring = stream_of(rig, stream["id"]).ring
        async with camera(stream["publish"], fps=30):
            async with asyncio.timeout(60):
                while ring.next_index < 30:
                    await asyncio.sleep(0.05)
            gc.collect()
            before_bytes = resident_bytes()
            ages_ms, held_ms, indices = [], [], []
            for _ in range(seconds):
                newest = ring.newest
                assert newest is not None
                held_ms.append((live_of(rig).clock() - newest.received_ns) / 1e6)
                body = about(f"stream://streams/{stream['id']}?frame_index=-1")
                told = (await rig.client.post("/v1beta/chat/completions", json=body)).json()["vision_bench"]
                ages_ms.append(told["frames"][0]["age_ms"])
                indices.append(told["frames"][0]["frame_index"])
            assert resident_bytes() - before_bytes < 100e6
            assert sorted(indices) == indices
            assert indices[-1] - indices[0] > 5 * (seconds - 1)
            # One stall of a busy machine is not a stream that falls behind: that would show in every later question.
            assert sorted(ages_ms)[len(ages_ms) // 2] < 500
            assert sorted(held_ms)[len(held_ms) // 2] < 500
            assert max(ages_ms) < 5_000

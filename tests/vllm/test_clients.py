"""The gateway's other doors in front of real vLLM: OpenAI's client, several servers, readiness, counts, media rules."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import openai
import pytest
from tests.integration.gateway_rig import gateway
from tests.integration.test_gateway_openai import HELLO, client_of
from tests.vllm import bodies
from tests.vllm.clips import make_clip
from tests.vllm.server import MODEL, TRUST, VllmServer, VllmServers, free_port


@pytest.fixture(scope="module")
def server(vllm_server: VllmServers) -> VllmServer:
    return vllm_server.get(TRUST)


async def test_openai_client(server: VllmServer) -> None:
    """Plain, streamed with usage, with a clip, and refused: its own types and exceptions, with vLLM's words."""
    clip: Any = [{"role": "user", "content": [bodies.video(make_clip(seconds=2)), {"type": "text", "text": "What?"}]}]
    async with gateway(server.base_url) as rig, client_of(rig) as client:
        create = client.chat.completions.create
        answer = await create(model=MODEL, messages=HELLO, max_tokens=4)
        seen = await create(model=MODEL, messages=clip, max_tokens=4, extra_body=bodies.at_fps(2))
        stream = await create(
            model=MODEL, messages=HELLO, max_tokens=4, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        with pytest.raises(openai.NotFoundError, match="The model `nope` does not exist"):
            await create(model="nope", messages=HELLO)
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            await create(model=MODEL, messages=[{"role": "user", "content": "x y z " * 4000}])
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 4
    assert seen.usage is not None
    assert seen.usage.prompt_tokens > answer.usage.prompt_tokens
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 4


async def test_models_without_paths(server: VllmServer, vllm_server: VllmServers) -> None:
    """vLLM's list says where its checkpoint lies; ours does not."""
    async with gateway(server.base_url) as rig, client_of(rig) as client:
        told = (await rig.client.get("/v1/models")).text
        own = (await asyncio.to_thread(server.get, "/v1/models")).decode()
        card = await client.models.retrieve(MODEL)
    checkpoint = str(vllm_server.environment.checkpoint)
    assert checkpoint in own
    assert checkpoint not in told
    assert card.id == MODEL
    assert card.model_dump()["max_model_len"] == 4096


async def test_a_dead_server_beside_a_living_one(server: VllmServer) -> None:
    """Every call is answered by the living one; the dead one is set aside, /readyz and /metrics say so."""
    dead = f"http://127.0.0.1:{free_port()}/v1"
    async with gateway(f"{dead},{server.base_url}", vllm_concurrency=2) as rig:
        items = [{"id": str(n), "body": bodies.ask(max_tokens=2, seed=n)} for n in range(8)]
        lines = await rig.batch(items)
        ready = await rig.client.get("/readyz")
        counts = (await rig.client.get("/metrics")).text
    assert [line["status"] for line in lines] == [200] * 8
    assert ready.status_code == 200
    assert re.search(r"^vision_bench_gateway_moved_calls_total [1-9]", counts, re.MULTILINE)
    assert f'vision_bench_gateway_upstream_set_aside{{upstream="{dead}"}} 1.0' in counts
    assert f'vision_bench_gateway_upstream_set_aside{{upstream="{server.base_url}"}} 0.0' in counts


async def test_media_rules(server: VllmServer) -> None:
    """With rules a clip in the body is answered as without them, and what vLLM would fetch never reaches it."""
    clip = bodies.ask(bodies.video(make_clip(seconds=2)), **bodies.at_fps(2), max_tokens=4)
    async with gateway(server.base_url, gateway_media_domains="none", gateway_max_fps=4) as rig:
        before = await asyncio.to_thread(server.metric, "vllm:prompt_tokens_total")
        for refused in (
            bodies.ask(bodies.video(f"{server.root}/health")),
            bodies.ask(bodies.video("file:///etc/hostname")),
            {**clip, **bodies.at_fps(5)},
        ):
            answer = await rig.client.post("/chat", json=refused)
            assert answer.status_code == 400, answer.text
        assert await asyncio.to_thread(server.metric, "vllm:prompt_tokens_total") == before
        answer = await rig.client.post("/chat", json=clip)
    assert answer.status_code == 200, answer.text


async def test_counts_agree_with_vllm(server: VllmServer) -> None:
    """What the gateway counts as answered is what vLLM finished."""
    name = "vllm:request_success_total"
    async with gateway(server.base_url) as rig:
        before = await asyncio.to_thread(server.metric, name)
        lines = await rig.batch([{"id": str(n), "body": bodies.ask(max_tokens=2, seed=n)} for n in range(5)])
        counts = (await rig.client.get("/metrics")).text
        finished = await asyncio.to_thread(server.metric, name) - before
    assert [line["status"] for line in lines] == [200] * 5
    assert finished == 5
    assert re.search(r'^vision_bench_gateway_batch_items_total\{outcome="ok"\} 5.0$', counts, re.MULTILINE)

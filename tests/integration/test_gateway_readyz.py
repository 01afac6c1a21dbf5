"""GET /readyz over real sockets."""

from __future__ import annotations

import asyncio

from tests.integration.engine_rig import declared
from tests.integration.gateway_rig import BODY, gateway, until
from tests.integration.stub_upstream import StubRequest, answers, stub_upstream

from vision_bench.engine.chat.settings import EngineSettings

MODELS = {"object": "list", "data": [{"id": "qwen", "root": "/srv/qwen"}]}


async def test_it_is_ready_with_a_server_that_lists_a_model() -> None:
    """200, the address, the names; and again a 503 a second after the server has gone. /healthz says up all along."""
    async with stub_upstream(answers(MODELS)) as stub, gateway(stub) as rig:
        answer = await rig.client.get("/readyz")
        assert (answer.status_code, answer.json()["ready"]) == (200, True)
        (state,) = answer.json()["upstreams"]
        assert (state["address"], state["models"], state["last_error"]) == (stub.base_url, ["qwen"], None)
        stub.stop()
        await asyncio.sleep(1.05)
        answer = await rig.client.get("/readyz")
        assert (answer.status_code, answer.json()["ready"]) == (503, False)
        assert "cannot be reached" in answer.json()["upstreams"][0]["last_error"]
        assert (await rig.client.get("/healthz")).json() == {"ok": True}


async def test_a_full_gateway_is_ready() -> None:
    """All permits out and a queue behind them: the question takes none of them."""
    chats = answers(delay_seconds=30)

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        await (answers(MODELS) if request.path == "/v1/models" else chats)(request, writer)

    async with stub_upstream(behave) as stub, gateway(stub, vllm_concurrency=1) as rig:
        calls = [asyncio.create_task(rig.client.post("/chat", json=BODY)) for _ in range(5)]
        await until(lambda: rig.admission.waiting == 4)
        assert (await rig.client.get("/readyz")).status_code == 200
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_it_needs_no_key_and_tells_strangers_nothing() -> None:
    """With GATEWAY_API_KEYS, details come with a key alone; VLLM_API_KEY asks, and is in no answer."""
    async with (
        declared(EngineSettings(api_key="theirs")) as engine,
        gateway(f"{engine.url}/v1", gateway_api_keys="ours", vllm_api_key="theirs") as rig,
    ):
        stranger = await rig.client.get("/readyz")
        guess = await rig.client.get("/readyz", headers={"Authorization": "Bearer nope"})
        known = await rig.client.get("/readyz", headers={"Authorization": "Bearer ours"})
    assert [answer.status_code for answer in (stranger, guess, known)] == [200, 200, 200]
    assert stranger.json() == guess.json()
    assert str(engine.port) not in stranger.text
    assert "qwen" not in stranger.text
    assert known.json()["upstreams"][0]["models"] == ["qwen"]
    assert not any(key in known.text for key in ("theirs", "ours"))


async def test_a_server_that_wants_a_key_is_not_ready_without() -> None:
    """Reachable, no list, and the remedy. A caller's key is not borrowed for it."""
    async with declared(EngineSettings(api_key="theirs")) as engine, gateway(f"{engine.url}/v1") as rig:
        answer = await rig.client.get("/readyz", headers={"Authorization": "Bearer theirs"})
    (state,) = answer.json()["upstreams"]
    assert (answer.status_code, state["reachable"], state["models"]) == (503, True, None)
    assert "set VLLM_API_KEY" in state["last_error"]

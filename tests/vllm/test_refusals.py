"""A server with one slot, a short queue, a key, and no trust in what a request says about media."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.gateway_rig import gateway
from tests.vllm import bodies
from tests.vllm.clips import make_clip
from tests.vllm.contract import found_differences, names
from tests.vllm.server import MODEL, VllmServer, VllmServers

from vision_bench.answers.body import Options
from vision_bench.client.analyze import analyze
from vision_bench.client.doctor import check_target
from vision_bench.client.gateway import GatewayClient
from vision_bench.client.results import read_results
from vision_bench.errors import HttpFailure

KEY = "sekret"  # the captured one
ADMITTED = 3
SLOW = bodies.ask(max_tokens=600)


@pytest.fixture(scope="module")
def server(vllm_server: VllmServers) -> VllmServer:
    return vllm_server.get(f"--max-num-queued-reqs={ADMITTED}", f"--api-key={KEY}", max_num_seqs=1)


async def test_full_queue(server: VllmServer) -> None:
    """Past its queue vLLM says 503 at once; /chat passes it on as it is, whole answers stay whole."""
    async with gateway(server.base_url, vllm_api_key=KEY, vllm_concurrency=16) as rig:
        calls = [rig.client.post("/chat", json={**SLOW, "seed": n}) for n in range(12)]
        answers = await asyncio.gather(*calls)
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= ADMITTED
    for answer in answers:
        if answer.status_code == 503:
            assert "cannot accept new requests" in answer.json()["error"]["message"]
            assert "retry-after" not in answer.headers
    assert await asyncio.to_thread(server.metric, "vllm:admission_rejections_total") >= statuses.count(503)


async def test_full_queue_in_a_batch(server: VllmServer) -> None:
    """In a batch the refused items are lines with 503; the others are answered."""
    async with gateway(server.base_url, vllm_api_key=KEY, vllm_concurrency=16) as rig:
        lines = await rig.batch([{"id": str(n), "body": {**SLOW, "seed": n}} for n in range(12)])
    refused = [line for line in lines if line["status"] == 503]
    assert refused
    assert len(lines) == 12
    assert all("cannot accept new requests" in line["error"] and "body" not in line for line in refused)
    assert all(line["status"] == 200 for line in lines if line not in refused)


async def test_few_enough_permits_never_meet_the_full_queue(server: VllmServer) -> None:
    """With no more permits than vLLM admits, waiting happens in the gateway and nothing is refused.

    The flag's number counts the running request too, whatever its name says: one more permit and items get 503.
    """
    async with gateway(server.base_url, vllm_api_key=KEY, vllm_concurrency=ADMITTED) as rig:
        lines = await rig.batch([{"id": str(n), "body": bodies.ask(max_tokens=100, seed=n)} for n in range(16)])
    assert [line["status"] for line in lines] == [200] * 16


async def test_key(server: VllmServer) -> None:
    """Without its key vLLM says 401, in a shape of its own that the client reads; with VLLM_API_KEY it answers."""
    async with gateway(server.base_url) as rig, GatewayClient(rig.url) as client:
        refused = await rig.client.post("/chat", json=bodies.ask())
        assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
        with pytest.raises(HttpFailure, match="HTTP 401: Unauthorized"):
            await client.chat(bodies.ask())
        own = await rig.client.post("/chat", json=bodies.ask(), headers={"Authorization": f"Bearer {KEY}"})
        assert own.status_code == 200
    async with gateway(server.base_url, vllm_api_key=KEY) as rig:
        assert (await rig.client.post("/chat", json=bodies.ask())).status_code == 200


@pytest.mark.parametrize("field", [bodies.WITH_SOUND, bodies.at_fps(1)], ids=["sound", "fps"])
async def test_media_fields_need_trust(server: VllmServer, field: bodies.Body) -> None:
    """Started without --trust-request-mm-kwargs vLLM refuses fps and sound; the same clip without them is answered."""
    async with gateway(server.base_url, vllm_api_key=KEY) as rig:
        refused = await rig.client.post("/chat", json=bodies.ask(bodies.video(make_clip()), **field))
        assert refused.status_code == 400
        error = refused.json()["error"]
        assert f"Per-request {next(iter(field))} are disabled" in error["message"]
        plain = await rig.client.post("/chat", json=bodies.ask(bodies.video(make_clip())))
        assert plain.status_code == 200


async def test_analysis_names_the_missing_flag(server: VllmServer, tmp_path: Path) -> None:
    """An analysis against such a server fails with the flag's name in every line."""
    (tmp_path / "clip.mp4").write_bytes(make_clip(seconds=2))
    out = tmp_path / "results.ndjson"
    async with gateway(server.base_url, vllm_api_key=KEY) as rig:
        summary = await analyze([tmp_path / "clip.mp4"], gateway=rig.url, out=out, options=Options(model=MODEL))
    assert summary.outcomes == {"http_error": 1}
    assert "--trust-request-mm-kwargs" in (read_results(out).lines[0].error or "")


async def test_doctor_names_the_missing_flag(server: VllmServer) -> None:
    """So does the doctor, beforehand and without a clip."""
    checks = {check.name: check for check in await check_target(server.base_url, model=MODEL, api_key=KEY)}
    assert checks["answers text"].state == "ok"
    for name in ("takes media_io_kwargs", "takes mm_processor_kwargs"):
        assert checks[name].state == "fail"
        assert "--trust-request-mm-kwargs" in (checks[name].remedy or "")


async def test_doctor_without_the_key(server: VllmServer) -> None:
    """A server with a key is told from one that is not there."""
    checks = {check.name: check for check in await check_target(server.base_url, model=MODEL)}
    assert checks["reachable"].state == "ok"
    assert checks["answers text"].state == "fail"
    assert "--api-key" in (checks["answers text"].remedy or "")


@pytest.mark.parametrize("name", names("default_flags/", "30"))
async def test_answers_as_captured(name: str, server: VllmServer) -> None:
    """With default flags, and with a key, the contract holds too."""
    headers = None if name.startswith("30") else {"Authorization": f"Bearer {KEY}"}
    assert await found_differences(name, server, headers=headers) == []

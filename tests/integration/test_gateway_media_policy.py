"""Rules for media, between a caller and vLLM."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.integration.gateway_rig import gateway, items, until
from tests.integration.stub_upstream import answers, stub_upstream

CLIP = "data:video/mp4;base64," + "A" * 400_000
REMOTE = "https://cdn.example.org/clip.mp4"
INNER = "http://169.254.169.254/latest/meta-data"


def asking(url: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": url}}]}], **fields}


@pytest.mark.parametrize("path", ["/chat", "/v1/chat/completions"])
async def test_without_rules_no_body_is_looked_into(path: str) -> None:
    """Bytes that are no JSON, names that stand twice, URLs of every kind: all reach vLLM as they came."""
    bodies = [b"\x00\xff no JSON", b'{"fps": NaN, "fps": 1e999}', json.dumps(asking(INNER)).encode(), b"[" * 1000]
    async with stub_upstream() as stub, gateway(stub) as rig:
        for body in bodies:
            assert (await rig.client.post(path, content=body)).status_code == 200
        assert len(await rig.batch([{"id": "a", "body": asking(INNER)}])) == 1
    assert [request.body for request in stub.requests[:4]] == bodies


@pytest.mark.parametrize("path", ["/chat", "/v1/chat/completions"])
async def test_what_keeps_to_the_rules_passes_byte_for_byte(path: str) -> None:
    """Looked into, and not written anew: odd spacing, escapes and key order stay."""
    settings = {"gateway_media_domains": "cdn.example.org", "gateway_max_fps": 4}
    body = b' {"x" : "\\u00e9",\n "media_io_kwargs":{"video":{"fps":4.0}}, ' + json.dumps(asking(CLIP)).encode()[1:]
    async with stub_upstream() as stub, gateway(stub, **settings) as rig:
        assert (await rig.client.post(path, content=body)).status_code == 200
        assert (await rig.client.post(path, json=asking(REMOTE))).status_code == 200
        for wrong, place in (
            (asking(INNER), "messages[0].content[0].video_url.url"),
            (asking("file:///etc/passwd"), "messages[0].content[0].video_url.url"),
            (asking(CLIP, media_io_kwargs={"video": {"fps": 30}}), "media_io_kwargs.video.fps"),
        ):
            refused = await rig.client.post(path, json=wrong)
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, place)
        assert (await rig.client.post(path, content=b"no JSON")).status_code == 400
        assert rig.app.state.buffer.held_bytes == 0
    assert len(stub.requests) == 2
    assert stub.requests[0].body == body


async def test_one_bad_item_refuses_its_batch() -> None:
    """The calls before it are cancelled, it is never sent, and the answer names its place."""
    async with (
        stub_upstream(answers(delay_seconds=30)) as stub,
        gateway(stub, vllm_concurrency=2, gateway_media_domains="none") as rig,
    ):
        batch = [*items(2), {"id": "bad", "body": asking(REMOTE)}]
        refused = await rig.client.post("/chat/batch", json={"items": batch})
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "items[2].body.messages[0].content[0].video_url.url"
        await until(lambda: stub.running == 0 and rig.admission.in_use == 0)
        stub.behaviour = answers()
        assert len(await rig.batch([*items(2), {"id": "good", "body": asking(CLIP)}])) == 3
    assert not any(b"cdn.example.org" in request.body for request in stub.requests)

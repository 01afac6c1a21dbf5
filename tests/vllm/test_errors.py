"""Every refusal of real vLLM, once directly and once through our gateway: the same status, type and bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.integration.gateway_rig import Rig, gateway
from tests.vllm import bodies
from tests.vllm.clips import make_clip
from tests.vllm.server import TRUST, VllmServer, VllmServers

from vision_bench.wire.chat import error_message

JSON = "application/json"
CLIP = make_clip()
NOWHERE = "http://127.0.0.1:9/none.mp4"


@dataclass(frozen=True, slots=True)
class Case:
    """What is sent, and what vLLM says to it."""

    name: str
    body: dict[str, Any] | bytes
    status: int
    says: str
    param: str | None = None
    content_type: str = JSON

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def truncated(clip: bytes) -> bytes:
    """Media data first and the index cut off, as an interrupted recording leaves it."""
    return clip[: len(clip) // 2]


CASES = (
    Case("unknown model", bodies.ask(model="nope"), 404, "The model `nope` does not exist", "model"),
    Case("no base64", bodies.ask(bodies.video("data:video/mp4;base64,@@@@")), 400, "Non-base64 digit found"),
    Case("no video", bodies.ask(bodies.video(b"not a video" * 100)), 400, "Could not open video stream"),
    Case("truncated", bodies.ask(bodies.video(truncated(CLIP))), 400, "Could not open video stream"),
    Case("empty video", bodies.ask(bodies.video(b"")), 400, "Could not open video stream"),
    Case(
        "sound asked of a clip without",
        bodies.ask(bodies.video(make_clip(seconds=2, tone_hz=None)), **bodies.WITH_SOUND),
        400,
        "No audio stream found.",
    ),
    Case("prompt too long", bodies.ask(text="x y z " * 4000), 400, "maximum context length is 4096", "input_tokens"),
    Case(
        "video too long",
        bodies.ask(bodies.video(make_clip(seconds=20)), **bodies.at_fps(4)),
        400,
        "exceeds model's maximum context length (4096)",
    ),
    Case("max_tokens too many", bodies.ask(max_tokens=5000), 400, "max_tokens", "max_tokens"),
    Case("no messages", {"model": "tiny-omni"}, 400, "'loc': 'body.messages'", "body.messages"),
    Case("empty messages", {"model": "tiny-omni", "messages": []}, 400, "empty conversation"),
    Case("temperature below 0", bodies.ask(temperature=-1), 400, "temperature must be non-negative", "temperature"),
    Case("temperature 3", bodies.ask(temperature=3), 400, "temperature", "temperature"),
    Case("top_p 2", bodies.ask(top_p=2), 400, "top_p", "top_p"),
    Case("max_tokens 0", bodies.ask(max_tokens=0), 400, "max_tokens", "max_tokens"),
    Case("n 0", bodies.ask(n=0), 400, "n must be at least 1"),
    Case("NaN", b'{"model":"tiny-omni","messages":[{"role":"user","content":"x"}],"temperature":NaN}', 400, "finite"),
    Case("half a body", b'{"model": "tiny-omni", "messages": [', 400, "json_invalid", "body.36"),
    Case("no body", b"", 400, "Field required", "body"),
    Case("a list", b"[1,2]", 400, "valid dictionary", "body"),
    Case("not JSON's type", json.dumps(bodies.ask()).encode(), 400, "Only 'application/json'", None, "text/plain"),
    Case("unknown part", bodies.ask({"type": "hologram", "x": 1}), 400, "hologram"),
    Case("three videos of two", bodies.ask(*[bodies.video(CLIP)] * 3), 400, "At most 2 video(s)"),
    Case("fps is a word", bodies.ask(bodies.video(CLIP), **bodies.at_fps("abc")), 400, "not supported between"),  # type: ignore[arg-type]
    Case("bad schema", bodies.ask(**bodies.schema("x", {"type": "notatype"})), 400, "schema"),
    Case("no schema", bodies.ask(response_format={"type": "json_schema"}), 400, "json_schema", "response_format"),
    Case("format xml", bodies.ask(response_format={"type": "xml"}), 400, "literal_error", "body.response_format.type"),
    Case("ftp", bodies.ask(bodies.video("ftp://127.0.0.1/none.mp4")), 400, "must be either a HTTP, data or file"),
    Case("no address", bodies.ask(bodies.video("nonsense")), 400, "must be either a HTTP, data or file URL"),
    Case("file", bodies.ask(bodies.video("file:///none.mp4")), 500, "Cannot load local files"),
    Case("nobody serves it", bodies.ask(bodies.video(NOWHERE)), 500, "Cannot connect to host"),
    Case(
        "unknown loader",
        bodies.ask(bodies.video(CLIP), media_io_kwargs={"video": {"video_backend": "nope"}}),
        500,
        "nope",
    ),
)
FORGIVEN = (
    Case("no model", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}, 200, ""),
    Case("unknown field", bodies.ask(foo_bar=1), 200, ""),
    Case("unknown role", {**bodies.ask(), "messages": [{"role": "alien", "content": "hi"}]}, 200, ""),
    Case("fps 0", bodies.ask(bodies.video(CLIP), **bodies.at_fps(0)), 200, ""),
    Case("a placeholder as text", bodies.ask(text="<|vision_start|><|video_pad|><|vision_end|>"), 200, ""),
)


@pytest.fixture(scope="module")
def server(vllm_server: VllmServers) -> VllmServer:
    return vllm_server.get(TRUST)


@pytest.fixture
async def rig(server: VllmServer) -> AsyncIterator[Rig]:
    async with gateway(server.base_url) as running:
        yield running


@pytest.fixture
async def direct(server: VllmServer) -> AsyncIterator[httpx.AsyncClient]:
    # vLLM closes connections after a 500 without saying so; a pool would hand the reset to the next test.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=server.root, limits=limits, timeout=60, trust_env=False) as client:
        yield client


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_refusal(case: Case, direct: httpx.AsyncClient, rig: Rig) -> None:
    """vLLM refuses with this status, parameter and message, and the gateway changes no byte of it."""
    headers = {"Content-Type": case.content_type}
    theirs = await direct.post("/v1/chat/completions", content=case.content, headers=headers)
    assert theirs.status_code == case.status, theirs.text
    error = theirs.json()["error"]
    assert case.says in error["message"]
    assert error["code"] == case.status
    if case.param:
        assert error["param"] == case.param

    ours = await rig.client.post("/chat", content=case.content, headers=headers)
    assert (ours.status_code, ours.headers["content-type"]) == (case.status, theirs.headers["content-type"])
    assert ours.content == theirs.content


@pytest.mark.parametrize("case", FORGIVEN, ids=lambda case: case.name)
async def test_forgiven(case: Case, rig: Rig) -> None:
    """vLLM answers these as if nothing were wrong, and so does the gateway."""
    answer = await rig.client.post("/chat", content=case.content, headers={"Content-Type": JSON})
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"]


async def test_batch_keeps_each_refusal(rig: Rig) -> None:
    """In a batch every refusal is its own line, with vLLM's status and message; good items are not touched."""
    cases = [case for case in CASES if isinstance(case.body, dict) and case.status < 500]
    good = {"id": "good", "body": bodies.ask(text="Hello")}
    lines = await rig.batch([good, *({"id": case.name, "body": case.body} for case in cases)])
    by_id = {line["id"]: line for line in lines}
    assert len(lines) == len(by_id) == len(cases) + 1
    assert by_id["good"]["status"] == 200
    for case in cases:
        line = by_id[case.name]
        assert (line["status"], "body" in line) == (case.status, False), line
        assert case.says in line["error"]
        assert line["elapsed_ms"] >= 0


async def test_refusal_of_a_stream_is_no_stream(rig: Rig) -> None:
    """A stream that cannot begin is a plain 4xx with a JSON body, never an event."""
    for body, status in ((bodies.ask(model="nope"), 404), (bodies.ask(bodies.video(b"no video")), 400)):
        answer = await rig.client.post("/chat", json={**body, "stream": True})
        assert (answer.status_code, answer.headers["content-type"]) == (status, JSON)
        assert answer.json()["error"]["code"] == status


async def test_routes_that_are_not_there(direct: httpx.AsyncClient) -> None:
    """vLLM's router has an error shape of its own; our reader finds the words in it."""
    wrong_method = await direct.get("/v1/chat/completions")
    assert (wrong_method.status_code, error_message(wrong_method.json())) == (405, "Method Not Allowed")
    no_route = await direct.post("/v1/nope", json={})
    assert (no_route.status_code, error_message(no_route.json())) == (404, "Not Found")


async def test_media_address_that_is_not_there(server: VllmServer, rig: Rig) -> None:
    """A 404 at the media's address is vLLM's 422."""
    answer = await rig.client.post("/chat", json=bodies.ask(bodies.video(f"{server.root}/none.mp4")))
    assert answer.status_code == 422
    assert "Failed to fetch media from URL: HTTP 404" in answer.json()["error"]["message"]

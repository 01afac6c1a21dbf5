"""The page at / over HTTP: what it holds, what it forbids, and what it tells whom."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest
from tests.integration.gateway_rig import gateway
from tests.integration.stub_upstream import answers, stub_upstream

from vision_bench.answers.analysis import default_question
from vision_bench.answers.body import Options, from_video

MODELS = {"object": "list", "data": [{"id": "qwen", "object": "model", "created": 1, "owned_by": "vllm"}]}
FILES = {file.name: file.read_text("utf-8") for file in (files("vision_bench.gateway") / "page").iterdir()}
LINKED = re.compile(r"""(?:from|import)\s+"\./([\w.]+)"|(?:href|src)="page/([\w.]+)\"""")


async def test_every_file_that_the_page_names_is_there() -> None:
    """Followed from / over links and imports; each has its own type, and no file lies there for nothing."""
    types = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    async with stub_upstream() as stub, gateway(stub) as rig:
        waiting, seen = [""], set()
        while waiting:
            name = waiting.pop()
            answer = await rig.client.get(f"/page/{name}" if name else "/")
            assert answer.status_code == 200, name
            assert answer.headers["content-type"].startswith(types[name.rpartition(".")[2] or "html"])
            seen.add(name or "index.html")
            waiting += {one or two for one, two in LINKED.findall(answer.text)} - seen
        assert seen == set(FILES)
        assert (await rig.client.head("/")).status_code == 200
        missing = await rig.client.get("/page/keys.py")
        assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found")
        assert (await rig.client.get("/page/..%2f__init__.py")).status_code == 404


async def test_nothing_inline_and_nothing_from_elsewhere_can_run() -> None:
    """The policy of every file; the page needs none of what it forbids."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        for path in ("/", *(f"/page/{name}" for name in FILES)):
            headers = (await rig.client.get(path)).headers
            policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["permissions-policy"].startswith("camera=(self)")
    page = FILES["index.html"]
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", page) == []


@pytest.mark.parametrize("name", FILES)
def test_no_file_names_another_host(name: str) -> None:
    """The one address beside this machine's own is the name of SVG, which nothing fetches."""
    found = re.findall(r"(?:[a-z]+:)?//[\w.:-]+", re.sub(r"^\s*//.*$|\s//\s.*$", "", FILES[name], flags=re.M))
    allowed = {"http://www.w3.org", "stream://streams", "http://127.0.0.1:8100", "http://127.0.0.1"}
    assert set(found) <= allowed


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_no_script_makes_markup_or_keeps_anything(name: str) -> None:
    """Text stays text, and a key has nowhere to lie but memory."""
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|Storage\b|indexedDB|\.cookie"
    )
    assert re.findall(forbidden, FILES[name]) == []


async def test_the_state_is_for_those_with_a_key() -> None:
    """A stranger hears that a key is wanted and which panels there are; a visitor with a key sees models and permits.
    Neither sees a key, and asking uses up no request of the key's allowance."""
    keys: dict[str, Any] = {"gateway_api_keys": "visitor", "vllm_api_key": "hidden", "realtime_api_key": "hidden"}
    async with (
        stub_upstream(answers(MODELS)) as stub,
        gateway(stub, **keys, realtime_base_url="http://127.0.0.1:9/v1", gateway_key_requests_per_minute=1) as rig,
    ):
        for _ in range(3):
            stranger = await rig.client.get("/page/state")
            visitor = await rig.client.get("/page/state", headers={"Authorization": "Bearer visitor"})
        assert stranger.json() == {
            **{"needs_key": True, "is_known": False, "live": False, "realtime": True},
            **dict.fromkeys(("models", "servers", "waiting")),
        }
        shown = visitor.json()
        assert shown["models"] == [
            {"id": "qwen", "state": "ready", "kind": "hosted", "servers": 1, "permits": 4, "in_use": 0}
        ]
        assert (shown["waiting"], shown["servers"][0]["permits"]) == (0, 4)
        assert "hidden" not in stranger.text + visitor.text
        assert (await rig.client.get("/v1/models", headers={"Authorization": "Bearer visitor"})).status_code == 200


async def test_the_page_opens_no_other_route() -> None:
    """With keys, what is not the page's still wants one: / is one path and not the beginning of all."""
    async with stub_upstream() as stub, gateway(stub, gateway_api_keys="k", realtime_base_url="http://x/v1") as rig:
        for path in ("/metrics", "/v1/models", "/pages", "/page", "/x"):
            assert (await rig.client.get(path)).status_code == 401, path
        for path in ("/chat", "/chat/batch", "/v1/chat/completions", "/v1/realtime/ticket"):
            assert (await rig.client.post(path, json={})).status_code == 401, path
        for path in ("/", "/page/state", "/page/question", "/page/app.js"):
            assert (await rig.client.get(path)).status_code == 200, path


async def test_the_question_is_the_one_of_analyze() -> None:
    """Prompt, schema and its name as a body of `analyze` has them."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        question = (await rig.client.get("/page/question")).json()
    for language in ("ko", "en"):
        body = from_video(b"", default_question(language), Options(), has_audio=True).body
        assert question["prompts"][language] == body["messages"][0]["content"][1]["text"]
        made = body["response_format"]["json_schema"]
        assert (question["schema_name"], question["schema"]) == (made["name"], made["schema"])

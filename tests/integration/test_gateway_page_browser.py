"""The page at / in a real browser."""

from __future__ import annotations

import base64
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.integration.browser_rig import Tab, tab
from tests.integration.gateway_rig import Rig, gateway, until
from tests.integration.live_rig import live_gateway, live_of
from tests.integration.realtime_rig import fast, realtime_engine
from tests.integration.stub_upstream import Behaviour, answers, streams, stub_upstream
from tests.integration.tiny_clips import tiny_clip

from vision_bench.answers.analysis import default_question
from vision_bench.answers.body import Options, build
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.rundir import read_records
from vision_bench.bench.summary import write_summary
from vision_bench.report.run_page import write_run_page
from vision_bench.wire.realtime.truth import EventTruth

pytestmark = pytest.mark.debian("chromium")

FIELDS = {"scene": "a <b>street</b>", "speech": "none", "on_screen_text": "EXIT", "summary": "A street & a sign."}


def models_and(behaviour: Behaviour) -> Behaviour:
    """A stub that lists one model, and answers chats by ``behaviour``."""
    listed = answers({"object": "list", "data": [{"id": "qwen", "object": "model", "created": 1, "owned_by": "vllm"}]})

    async def behave(request: Any, writer: Any) -> None:
        await (listed if request.path == "/v1/models" else behaviour)(request, writer)

    return behave


def chat_answer(text: str, finish_reason: str = "stop") -> dict[str, Any]:
    """A whole answer."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    return {
        "model": "qwen",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": usage,
    }


def token_events(*tokens: str) -> list[bytes]:
    """An event stream of them, with its usage and its end."""
    said = [{"model": "qwen", "choices": [{"index": 0, "delta": {"content": token}}]} for token in tokens]
    last = [{"model": "qwen", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": len(tokens)}}]
    return [f"data: {json.dumps(each)}\n\n".encode() for each in [*said, *last]] + [b"data: [DONE]\n\n"]


async def saved_run(opened: Tab, folder: Path) -> tuple[Path, list[ChatRecord]]:
    """What the page saves, unpacked: the run folder, and its records as `report` reads them."""
    async with opened.page.expect_download() as waiting:
        await opened.page.click("#stamps-save")
    await (await waiting.value).save_as(folder / "run.tar")
    with tarfile.open(folder / "run.tar") as saved:
        saved.extractall(folder, filter="data")
    (run,) = (path for path in folder.iterdir() if path.is_dir())
    return run, list(read_records(run, ChatRecord))


def elsewhere(asked: list[str], rig: Rig) -> list[str]:
    """What a page asked of others than the gateway."""
    return [url for url in asked if not url.startswith((rig.url, rig.url.replace("http", "ws", 1), "blob:"))]


async def test_the_models_table_fits_a_phone() -> None:
    """A long name is broken to make room; no short word is, and nothing lies behind the edge."""
    card = {"id": "Organization/Model-30B-A3B-Instruct", "object": "model", "created": 1, "owned_by": "vllm"}
    async with (
        stub_upstream(answers({"object": "list", "data": [card]})) as stub,
        gateway(stub) as rig,
        tab(viewport={"width": 390, "height": 800}) as opened,
    ):
        await opened.page.goto(rig.url)
        await opened.until_text("#model-rows", card["id"])
        box = "document.getElementById('model-rows').closest('.scroll')"
        assert await opened.page.evaluate(f"{box}.scrollWidth <= {box}.clientWidth")
        words = "[...document.querySelectorAll('#model-rows td')].slice(1, 3)"
        lines = f"{words}.map(at => {{ const r = document.createRange(); r.selectNodeContents(at);"
        assert await opened.page.evaluate(f"{lines} return r.getClientRects().length; }})") == [1, 1]


async def test_a_clip_becomes_four_fields_and_a_waterfall(tmp_path: Path) -> None:
    """The body is the one that `analyze` sends, the fields are text whatever is in them, each stage has its time."""
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(tiny_clip(seconds=2))
    reply = answers(chat_answer(json.dumps(FIELDS)), delay_seconds=0.2)
    async with stub_upstream(models_and(reply)) as stub, gateway(stub) as rig, tab(locale="ko-KR") as opened:
        await opened.page.goto(rig.url)
        await opened.until_text("#model-rows", "qwen")
        await opened.page.set_input_files("#clip-file", clip)
        await opened.page.click("#clip-ask:enabled")
        assert "a <b>street</b>" in await opened.until_text("#clip-answer", "A street & a sign.")
        stages = await opened.until_text("#clip-stages", "check the four fields")
        assert "n/a" not in stages, stages
        run, (record,) = await saved_run(opened, tmp_path)
        await opened.page.set_viewport_size({"width": 390, "height": 800})
        assert await opened.page.evaluate("document.documentElement.scrollWidth") <= 390  # a phone needs no sideways
        sent = next(request.json() for request in stub.requests if request.path.endswith("/chat/completions"))
    assert (record.item, record.outcome, record.is_valid, record.status) == ("clip.mp4", "ok", True, 200)
    stamps = [record.due_ns, record.enc_ns, record.ser_ns, record.hdr_ns, record.rsp_ns, record.end_ns, record.par_ns]
    assert stamps == sorted(stamps)
    (step,) = write_summary(run)["steps"]
    assert (step["requests"]["due"], step["requests"]["ok"]) == (1, 1)
    assert write_run_page(run, write_summary(run), made_at=datetime.now(tz=UTC)).stat().st_size > 10_000
    assert sent == build(clip.read_bytes(), clip.name, default_question("ko"), Options()).body
    assert opened.problems == []
    assert elsewhere(opened.asked, rig) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (chat_answer("{}"), "lacks scene, speech"),
        (chat_answer('{"scene": 1'), "not JSON"),
        (chat_answer(json.dumps(FIELDS), "length"), "max_tokens"),
        (chat_answer(json.dumps(FIELDS | {"summary": "x" * 401})), "more than 400 letters"),
        (chat_answer(json.dumps(FIELDS | {"mood": "calm"})), "field mood"),
    ],
)
async def test_an_answer_that_breaks_the_schema_says_why(tmp_path: Path, answer: dict[str, Any], words: str) -> None:
    """The outcome and what came, instead of fields that nobody checked."""
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(tiny_clip(seconds=1))
    async with stub_upstream(models_and(answers(answer))) as stub, gateway(stub) as rig, tab() as opened:
        await opened.page.goto(rig.url)
        await opened.until_text("#model-rows", "qwen")
        await opened.page.set_input_files("#clip-file", clip)
        await opened.page.click("#clip-ask:enabled")
        await opened.until_text("#clip-answer", words)


async def test_publish_ask_answer_leave(tmp_path: Path) -> None:
    """A browser's camera becomes a stream; the picture that the model got is the frame whose number and thumbnail the
    page shows; to stop a question frees its permit, and to leave ends the stream."""
    slow = streams([token_events("never ")[0]], then="silent")
    behaviours = [streams(token_events("a ", "green ", "picture"), gap_seconds=0.05), slow]

    async def in_turn(request: Any, writer: Any) -> None:
        await behaviours.pop(0)(request, writer)

    async with stub_upstream(models_and(in_turn)) as stub, live_gateway(stub) as rig, tab() as opened:
        await opened.page.goto(rig.url)
        await opened.until_text("#model-rows", "qwen")
        await opened.page.click("#camera-start")
        await opened.until_text("#camera-state", "On.")
        (stream,) = live_of(rig).registry
        await until(lambda: stream.ring.next_index > 0, within_seconds=60)
        await opened.page.click("#ask-button:enabled")
        await opened.until_text("#ask-answer", "a green picture")
        caption = await opened.until_text("#ask-frames", "frame ")
        await opened.page.wait_for_function("document.querySelector('#ask-frames img')?.naturalWidth > 0")
        numbers = await opened.until_text("#ask-numbers", "frame age")
        assert numbers.count(" ms") == 3 and "n/a" not in numbers, numbers
        asked = next(request.json() for request in stub.requests if request.path.endswith("/chat/completions"))
        picture = base64.b64decode(asked["messages"][0]["content"][0]["image_url"]["url"].partition(",")[2])
        index = int(caption.split()[1].rstrip(","))
        assert stream.ring[index].jpeg == picture

        await opened.page.click("#ask-button")
        await opened.until_text("#ask-answer", "never")
        assert rig.admission.in_use == 1
        await opened.page.click("#ask-stop")
        await until(lambda: rig.admission.in_use == 0, within_seconds=60)

        run, records = await saved_run(opened, tmp_path)
        assert [(each.outcome, each.text) for each in records] == [("ok", "a green picture"), ("client_left", "never ")]
        (step,) = write_summary(run)["steps"]
        assert (step["requests"]["due"], step["requests"]["ok"]) == (2, 1)

        await opened.page.click("#camera-leave")
        await until(lambda: not stream.is_active, within_seconds=60)
        assert opened.problems == []
        assert elsewhere(opened.asked, rig) == []


async def test_a_closed_tab_leaves_no_stream_and_no_permit() -> None:
    """Who closes the tab in the middle of an answer has left: the call is closed, the stream ended."""
    slow = streams([token_events("never ")[0]], then="silent")
    async with stub_upstream(models_and(slow)) as stub, live_gateway(stub) as rig, tab() as opened:
        await opened.page.goto(rig.url)
        await opened.until_text("#model-rows", "qwen")
        await opened.page.click("#camera-start")
        await opened.until_text("#camera-state", "On.")
        (stream,) = live_of(rig).registry
        await until(lambda: stream.ring.next_index > 0, within_seconds=60)
        await opened.page.click("#ask-button:enabled")
        await opened.until_text("#ask-answer", "never")
        await opened.page.close(run_before_unload=False)
        await until(lambda: rig.admission.in_use == 0 and not stream.is_active, within_seconds=60)


async def test_the_visitors_own_key_opens_the_page() -> None:
    """Without a key the page is there and shows nothing of the models; with the right one it works. The key is in no
    storage, no cookie and no address."""
    key = "visitor-key-1"
    async with (
        stub_upstream(models_and(answers(chat_answer("x")))) as stub,
        gateway(stub, gateway_api_keys=key, vllm_api_key="server-key-2") as rig,
        tab() as opened,
    ):
        await opened.page.goto(rig.url)
        await opened.until_text("#model-rows", "visitors with a key")
        await opened.page.fill("#key", "wrong")
        await opened.page.press("#key", "Enter")
        await opened.until_text("#key-state", "does not know this key")
        await opened.page.fill("#key", key)
        await opened.page.press("#key", "Enter")
        await opened.until_text("#key-state", "The key is good")
        await opened.until_text("#model-rows", "qwen")
        kept = await opened.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
        assert kept == '[{},{},""]'
        assert not any(key in url for url in opened.asked)
        assert "server-key-2" not in await opened.page.content()


async def test_a_world_is_steered_with_the_keyboard() -> None:
    """Over the gateway's relay: the stream plays, a held W is heard by a chunk and seen in the picture, and the numbers
    of the session are there."""
    timing = fast(ttfc_ms=200, chunk_ms=700, api_key="server-key-2")
    async with (
        stub_upstream(models_and(answers())) as stub,
        realtime_engine(timing) as engine,
        gateway(stub, realtime_base_url=f"{engine.url}/v1", realtime_api_key="server-key-2") as rig,
        tab() as opened,
    ):
        await opened.page.goto(rig.url)
        await opened.page.fill("#world-size", "256x192")
        await opened.page.fill("#world-chunks", "300")
        await opened.page.click("#world-start")
        await opened.until_text("#world-state", " chunks.")
        await opened.page.focus("#world-stage")
        await opened.page.keyboard.down("w")
        numbers = await opened.until_text("#world-numbers", "W: key to the picture")
        await opened.page.keyboard.up("w")
        assert "n/a" not in numbers, numbers
        assert await opened.page.evaluate("document.querySelector('#world-video').currentTime") > 0
        await opened.page.click("#world-stop")
        await opened.until_text("#world-state", "Stopped.")
        await until(lambda: not rig.app.state.realtime_sessions, within_seconds=60)
        events = [each for each in await engine.truth() if isinstance(each, EventTruth)]
    assert (events[0].event_id, events[0].first_affected_ns is not None) == ("page-1", True)
    assert opened.problems == []
    assert elsewhere(opened.asked, rig) == []


async def test_a_strangers_page_drives_no_gateway() -> None:
    """A page of another site, and one whose own name was made to stand for 127.0.0.1, are told apart from the gateway's
    own by what Chromium itself says of them: they create no stream and get no ticket."""
    create = """async (url) => {
        try { return (await fetch(url, {method: "POST", mode: url.startsWith("/") ? "cors" : "no-cors"})).status }
        catch (problem) { return String(problem) }
    }"""
    rebinding = ("--host-resolver-rules=MAP evil.example 127.0.0.1",)
    async with (
        stub_upstream(models_and(answers(chat_answer("a hall")))) as stub,
        live_gateway(stub, realtime_base_url="http://127.0.0.1:9/v1") as rig,
        tab(flags=rebinding) as opened,
    ):
        streams_there = live_of(rig).registry
        await opened.page.goto(f"http://evil.example:{rig.port}/page/style.css")  # rebound: its own origin, so it reads
        assert await opened.page.evaluate(create, "/v1beta/streams") == 403
        assert await opened.page.evaluate(create, "/v1/realtime/ticket") == 403
        await opened.page.goto(f"{stub.base_url.replace('127.0.0.1', 'evil.example')}/models")  # a site of its own
        await opened.page.evaluate(create, f"{rig.url}/v1beta/streams")  # sent, and answered with nothing it may read
        assert list(streams_there) == []
        await opened.page.goto(f"{rig.url}/page/style.css")
        assert await opened.page.evaluate(create, "/v1beta/streams") == 201
        assert len(list(streams_there)) == 1

"""The page's arithmetic, in the program that runs it: scripts without elements, imported in a real browser."""

from __future__ import annotations

import base64
import json

import pytest
from tests.integration.browser_rig import tab
from tests.integration.gateway_rig import gateway
from tests.integration.stub_upstream import stub_upstream
from tests.integration.tiny_clips import tiny_clip

pytestmark = pytest.mark.debian("chromium")


async def test_events_do_not_depend_on_how_the_bytes_came() -> None:
    """Cut at every place, with each kind of line end, letters of three bytes among them; half an event is none."""
    program = """async () => {
        const { events } = await import("/page/sse.js");
        const found = [];
        for (const end of ["\\n", "\\r\\n", "\\r"]) {
            const lines = [": hello", 'data: {"a": 1}', "", "event: x", "data:안녕", "data:  b", "", "data: half", ""];
            const bytes = new TextEncoder().encode(lines.join(end));
            for (let cut = 0; cut <= bytes.length; cut += 1) {
                const stream = new ReadableStream({ start(to) {
                    for (const part of [bytes.slice(0, cut), bytes.slice(cut)]) to.enqueue(part);
                    to.close();
                } });
                const came = [];
                for await (const data of events(stream)) came.push(data);
                found.push(JSON.stringify(came));
            }
        }
        return [...new Set(found)];
    }"""
    async with stub_upstream() as stub, gateway(stub) as rig, tab() as opened:
        await opened.page.goto(rig.url)
        assert [json.loads(each) for each in await opened.page.evaluate(program)] == [['{"a": 1}', "안녕\n b"]]


async def test_the_numbers_of_a_session_are_its_arrivals() -> None:
    """Chunks of 9 and 12 pictures at 12 a second, half a second and two seconds apart: RTF 0.5, then 2; 1.25 over both.
    A key that the third chunk was the first to show is seen when the player comes to that chunk's beginning."""
    program = """async () => {
        const { Pace } = await import("/page/pace.js");
        const pace = new Pace(12, 1000);
        const none = [pace.firstChunkMs, pace.lastFactor, pace.wholeFactor, pace.latest];
        pace.chunk({ pictures: 9, startedEvents: [] }, 1500);
        pace.sent("k", "W", 1600);
        pace.chunk({ pictures: 12, startedEvents: [] }, 2000);
        const first = pace.lastFactor;
        pace.chunk({ pictures: 12, startedEvents: ["k", "nobody"] }, 4000);
        pace.shows(1.74, 4100);
        const early = pace.latest;
        pace.shows(1.75, 4200);
        const { receivedMs, shownMs } = pace.latest;
        return [none, pace.firstChunkMs, first, pace.lastFactor, pace.wholeFactor, early, receivedMs, shownMs];
    }"""
    async with stub_upstream() as stub, gateway(stub) as rig, tab() as opened:
        await opened.page.goto(rig.url)
        found = await opened.page.evaluate(program)
    assert found == [[None, None, None, None], 500, 0.5, 2, 1.25, None, 4000, 4200]


@pytest.mark.parametrize(("has_audio", "heard"), [(True, True), (False, False), (None, None)])
async def test_the_page_knows_whether_a_clip_has_sound(has_audio: bool | None, heard: bool | None) -> None:
    """By its tracks; of what is no MP4 it says nothing."""
    clip = b"\x1a\x45\xdf\xa3 no MP4" if has_audio is None else tiny_clip(seconds=1, has_audio=has_audio)
    program = """async (text) => {
        const { hasSound } = await import("/page/mp4.js");
        return hasSound(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
    }"""
    async with stub_upstream() as stub, gateway(stub) as rig, tab() as opened:
        await opened.page.goto(rig.url)
        assert await opened.page.evaluate(program, base64.b64encode(clip).decode()) is heard

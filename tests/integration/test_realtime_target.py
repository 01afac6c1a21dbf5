"""The client of generated video against a scripted server: every oddity of the protocol, survived and named."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.scripted_video import QUICK, Stage, hold, plan, prompt_event, scripted

from vision_bench.bench.realtime.journal import Journal, lost_sessions
from vision_bench.bench.realtime.plan import Patience
from vision_bench.bench.realtime.record import observation
from vision_bench.bench.realtime.socket import check_server, read_address
from vision_bench.bench.realtime.target import RealtimeTarget
from vision_bench.errors import ConnectFailed, InvalidRequest


async def whole(stage: Stage) -> None:
    await stage.begin()
    await stage.chunk(0, frames=9)
    await stage.chunk(1)
    await stage.chunk(2)
    await stage.trailer()
    await stage.done()


async def test_a_whole_session_and_its_bytes(tmp_path: Path) -> None:
    """Chunks are stamped in order, the bytes lie one after the other in a file, and no close frame is no failure."""
    async with scripted(whole) as address:
        record = await hold(RealtimeTarget(address, plan(), folder=tmp_path))
    assert (record.outcome, record.close_code) == ("ok", 1006)
    assert [chunk.announced_frames for chunk in record.chunks] == [9, 12, 12, 0]
    stamps = [record.connect_ns, record.connected_ns, record.start_sent_ns, record.video_start_ns, record.first_byte_ns]
    stamps += [*(chunk.arrival_ns for chunk in record.chunks), record.done_ns]
    assert stamps == sorted(stamps, key=lambda stamp: stamp or 0)
    assert (tmp_path / "000000.mp4").stat().st_size == 310


async def test_a_start_message_with_a_large_picture_is_echoed_back() -> None:
    """An echo of 3 MB, over the usual 1 MiB limit, is taken, and not kept."""

    async def script(stage: Stage) -> None:
        start = json.loads(await stage.socket.recv())
        await stage.say({"type": "video.start", "request_id": "r", "format": "m4s", "config": start})
        await stage.chunk(0, frames=9)
        await stage.trailer()
        await stage.done()

    start = json.dumps({"type": "session.start", "image_reference": {"image_url": "x" * 3_000_000}})
    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan(num_chunks=1, start=start)))
    assert record.outcome == "ok"


async def test_a_message_over_the_servers_limit_is_named() -> None:
    """The server closes with 1009."""

    async def script(stage: Stage) -> None:
        await stage.socket.close(1009)

    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan()))
    assert record.outcome == "message_too_big"


async def test_events_go_out_at_their_chunk_and_are_followed() -> None:
    """Each once its chunk is there, in order; what became of it is in the chunks."""
    heard: list[Any] = []

    async def script(stage: Stage) -> None:
        await stage.begin()
        await stage.chunk(0, frames=9)
        heard.append(await stage.hear())
        await stage.queued("a")
        await stage.chunk(1)
        heard.append(await stage.hear())
        await stage.queued("b")
        await stage.chunk(2, started_event_ids=["a"])
        await stage.chunk(3, completed_event_ids=["a"])
        await stage.trailer()
        await stage.done()

    events = {0: [prompt_event("a")], 1: [prompt_event("b")]}
    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan(num_chunks=4, interactions=events)))
    assert [message["interaction"]["event_id"] for message in heard] == ["a", "b"]
    assert record.outcome == "ok"
    assert all(event.acked_ns is not None and event.acked_ns >= event.sent_ns for event in record.events)


async def test_a_boundary_that_was_not_announced_is_not_lost() -> None:
    """The first chunk announced is number 2: what was due after 0 and 1 goes out then."""
    heard: list[Any] = []

    async def script(stage: Stage) -> None:
        await stage.begin()
        await stage.chunk(2)
        heard.extend([await stage.hear(), await stage.hear()])
        await stage.queued("a")
        await stage.queued("b")
        await stage.trailer()
        await stage.done()

    events = {0: [prompt_event("a")], 1: [prompt_event("b")]}
    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan(interactions=events)))
    assert [message["interaction"]["event_id"] for message in heard] == ["a", "b"]
    assert (record.outcome, record.oddities["chunks_not_announced"]) == ("ok", 2)


async def test_pings_go_out_from_the_start_while_a_session_queues() -> None:
    """With nothing but video.start said, pings come and are answered; they are no media."""

    async def script(stage: Stage) -> None:
        await stage.begin()
        for _ in range(3):
            await stage.hear_type("session.ping")
            await stage.say({"type": "session.pong"})
        await stage.chunk(0, frames=9)
        await stage.trailer()
        await stage.done()

    patience = Patience(20, 20, ping_seconds=0.02)
    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan(num_chunks=1, patience=patience)))
    assert record.outcome == "ok"
    assert record.pongs == 3 <= record.pings


@pytest.mark.parametrize(
    ("chunks", "patience", "outcome"),
    [
        (0, Patience(1.0, 20, 0.02), "first_chunk_timeout"),
        (1, Patience(20, 1.0, 0.02), "chunk_timeout"),
    ],
)
async def test_deadlines_are_of_media_and_pongs_do_not_extend_them(
    chunks: int, patience: Patience, outcome: str
) -> None:
    """A server that answers every ping and sends no more chunks runs into the deadline all the same."""

    async def script(stage: Stage) -> None:
        await stage.begin()
        for index in range(chunks):
            await stage.chunk(index)
        while True:
            await stage.hear_type("session.ping")
            await stage.say({"type": "session.pong"})

    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan(patience=patience)))
    assert (record.outcome, record.detail) == (outcome, f"after {chunks} of 3 chunks")
    assert record.pongs > 0


async def test_a_server_that_stops_reading_holds_nobody() -> None:
    """A message that cannot go out waits no longer than the chunk that it would be for, start and event alike."""

    async def deaf_from_the_start(stage: Stage) -> None:
        stage.socket.transport.pause_reading()
        await over.wait()

    async def deaf_later(stage: Stage) -> None:
        await stage.begin()
        stage.socket.transport.pause_reading()
        await stage.chunk(0, frames=9)
        await over.wait()

    over = asyncio.Event()
    large = "x" * 40_000_000  # more than the kernel takes for somebody who does not read
    async with scripted(deaf_from_the_start) as address:
        start = json.dumps({"type": "session.start", "prompt": large})
        record = await hold(RealtimeTarget(address, plan(start=start, patience=Patience(1.0, 20, 20))))
        over.set()
    over.clear()
    assert (record.outcome, record.start_sent_ns) == ("first_chunk_timeout", None)
    async with scripted(deaf_later) as address:
        event = {**prompt_event("a"), "padding": large}
        record = await hold(RealtimeTarget(address, plan(patience=Patience(20, 1.0, 20), interactions={0: [event]})))
        over.set()
    assert (record.outcome, record.detail) == ("chunk_timeout", "after 1 of 3 chunks")


@pytest.mark.parametrize(
    ("before", "outcome"), [("start", "start_refused"), ("media", "late_error"), ("end", "session_error")]
)
async def test_errors_are_named_by_when_they_come(before: str, outcome: str) -> None:
    """Before video.start, before the first chunk, and in mid-stream."""

    async def script(stage: Stage) -> None:
        if before == "start":
            await stage.hear()
        else:
            await stage.begin()
        if before == "end":
            await stage.chunk(0)
        await stage.error("400: width must be 832")

    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan()))
    assert record.outcome == outcome
    assert record.errors == ["400: width must be 832"]


async def test_an_error_that_nothing_follows_ends_a_session_that_stays_open() -> None:
    """The connection hangs after a fatal error: in a short while the error was the end."""

    async def script(stage: Stage) -> None:
        await stage.begin()
        await stage.error("engine died")
        await stage.socket.wait_closed()

    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan(patience=Patience(20, 20, 20, doubt_seconds=0.2))))
    assert (record.outcome, record.detail) == ("late_error", "engine died")


async def test_a_stall_that_the_server_found() -> None:
    """An error, then done: one name."""

    async def script(stage: Stage) -> None:
        await stage.begin()
        await stage.chunk(0)
        await stage.error("Stall timeout: no generation progress")
        await stage.done(stopped=True)

    async with scripted(script) as address:
        assert (await hold(RealtimeTarget(address, plan()))).outcome == "server_stall"


async def test_a_lost_connection_a_short_rollout_and_a_stop() -> None:
    """Gone without a word; done too soon; done because we asked for it."""

    async def lost(stage: Stage) -> None:
        await stage.begin()
        await stage.chunk(0)

    async def short(stage: Stage) -> None:
        await lost(stage)
        await stage.trailer()
        await stage.done()

    async def stopped(stage: Stage) -> None:
        await lost(stage)
        await stage.hear_type("session.stop")
        await stage.done(stopped=True)

    async with scripted(lost) as address:
        assert (await hold(RealtimeTarget(address, plan()))).outcome == "connection_lost"
    async with scripted(short) as address:
        assert (await hold(RealtimeTarget(address, plan()))).outcome == "short_rollout"
    async with scripted(stopped) as address:
        record = await hold(RealtimeTarget(address, plan(stop_after_chunk=0)))
    assert (record.outcome, record.was_stopped) == ("ok", True)
    assert (record.done_ns or 0) >= (record.stop_sent_ns or 0) > 0


async def test_a_planned_drop_leaves_without_a_word() -> None:
    """The session that is to leave leaves at its chunk; the next one of the step is held to its end."""
    gone = asyncio.Event()

    async def script(stage: Stage) -> None:
        await stage.begin()
        await stage.chunk(0)
        if not gone.is_set():
            await stage.socket.wait_closed()
            gone.set()
            return
        await stage.chunk(1)
        await stage.chunk(2)
        await stage.done()

    options: dict[str, Any] = {"drop_after_chunk": 0, "drop_sessions": frozenset({0})}
    async with scripted(script) as address:
        target = RealtimeTarget(address, plan(**options))
        left = await hold(target, index=0)
        await asyncio.wait_for(gone.wait(), 20)
        stayed = await hold(target, index=1)
    assert (left.outcome, left.left_ns is not None, len(left.chunks)) == ("ok", True, 1)
    assert (stayed.outcome, stayed.left_ns, len(stayed.chunks)) == ("ok", None, 3)


async def test_what_cannot_be_read_is_survived() -> None:
    """Not JSON, a type nobody knows, bytes that nobody announced, metadata of another shape."""

    async def script(stage: Stage) -> None:
        await stage.begin()
        await stage.socket.send("{")
        await stage.say({"type": "video.mood"})
        await stage.say({"type": "video.chunk_metadata", "kind": "media", "num_frames": -1})
        await stage.say({"type": "session.done", "chunks": 10**30})
        await stage.socket.send('{"type": "session.interaction.queued", "event_id": "\\ud800"}')
        await stage.socket.send(b"stray")
        await stage.chunk(0, frames=9)
        await stage.trailer()
        await stage.done()

    async with scripted(script) as address:
        record = await hold(RealtimeTarget(address, plan(num_chunks=1)))
    assert record.outcome == "ok"
    assert record.oddities == {
        "unreadable_message": 3,
        "acknowledged_and_not_sent": 1,
        "unknown_message": 1,
        "sent_and_not_announced": 1,
        "no_close_frame": 1,
    }


async def test_a_refused_upgrade_and_nobody_there() -> None:
    """401 is an http_error with its status; no listener is connect_failed; both before a run are errors."""
    async with scripted(whole, status=401) as address:
        record = await hold(RealtimeTarget(address, plan()))
        with pytest.raises(InvalidRequest, match="401; give --api-key"):
            await check_server(address, api_key=None)
        with pytest.raises(InvalidRequest, match="401; give another --api-key"):
            await check_server(address, api_key="k")
    assert (record.outcome, record.detail) == ("http_error", "HTTP 401: the WebSocket was refused")
    async with scripted(whole, status=403) as address:
        with pytest.raises(InvalidRequest, match=r"403: it has no such route \(usual is /v1/realtime/video\), or"):
            await check_server(address, api_key="k")
    record = await hold(RealtimeTarget(address, plan()))  # the server is gone
    assert record.outcome == "connect_failed"
    with pytest.raises(ConnectFailed):
        await check_server(address, api_key=None)


async def test_a_redirect_is_not_followed() -> None:
    """Another server is not the one that was to be measured, and is not told the key."""
    async with scripted(whole, status=307, location="ws://127.0.0.1:1/") as address:
        record = await hold(RealtimeTarget(address, plan(), api_key="k"))
    assert (record.outcome, record.detail) == ("http_error", "HTTP 307: the WebSocket was refused")


async def test_the_key_goes_on_the_upgrade() -> None:
    """As a bearer token."""
    keys: list[str | None] = []

    async def script(stage: Stage) -> None:
        assert stage.socket.request is not None
        keys.append(stage.socket.request.headers.get("Authorization"))
        await whole(stage)

    async with scripted(script) as address:
        await hold(RealtimeTarget(address, plan(), api_key="k"))
        await hold(RealtimeTarget(address, plan()))
    assert keys == ["Bearer k", None]


async def test_a_killed_run_leaves_its_sessions_in_the_journal(tmp_path: Path) -> None:
    """Cut off in mid-session, with half a line at the end: the facts give the chunks and the event again."""

    async def script(stage: Stage) -> None:
        await stage.begin()
        await stage.chunk(0, frames=9)
        await stage.hear()
        await stage.queued("a")
        await stage.chunk(1)
        await stage.socket.wait_closed()

    journal = Journal(tmp_path / "facts.jsonl")
    got_two = asyncio.Event()
    target: RealtimeTarget
    async with scripted(script) as address:
        target = RealtimeTarget(
            address,
            plan(interactions={0: [prompt_event("a")]}),
            journal=journal,
            on_chunk=lambda record: got_two.set() if len(record.chunks) == 2 else None,
        )
        held = asyncio.create_task(hold(target, index=4))
        await asyncio.wait_for(got_two.wait(), 20)
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
    journal.close()
    with (tmp_path / "facts.jsonl").open("ab") as file:
        file.write(b'{"session":4,"fa')
    (record,) = lost_sessions(tmp_path / "facts.jsonl", known=())
    assert (record.ordinal, record.index, record.outcome, record.num_chunks) == (4, 4, "lost", 3)
    assert [chunk.generation_index for chunk in record.chunks] == [0, 1]
    assert record.events[0].acked_ns is not None
    assert len(observation(record).records) == 2
    assert list(lost_sessions(tmp_path / "facts.jsonl", known={4})) == []


@pytest.mark.parametrize("url", ["http://h:1/", "ws://", "ws://u:p@h/", "ws://h:99999", "x"])
def test_what_is_no_address(url: str) -> None:
    """Refused with an example."""
    with pytest.raises(Exception, match="give one such as ws://"):
        read_address(url)


def test_an_address_without_a_path_gets_the_route() -> None:
    """And its root over HTTP is where models and truth are asked for."""
    address = read_address("wss://h:8200")
    assert address.url == "wss://h:8200/v1/realtime/video"
    assert address.http_root == "https://h:8200"
    assert read_address("ws://h/x/").url == "ws://h/x"
    assert QUICK.ping_seconds > 0

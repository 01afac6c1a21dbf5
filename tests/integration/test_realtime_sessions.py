"""The reference server for generated video: sessions that queue, stop, leave, stall, steer; and faults on demand."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.integration.realtime_rig import (
    Json,
    RealtimeRig,
    Seen,
    decoded,
    decoded_colour,
    fast,
    play,
    realtime_engine,
    start_message,
)
from websockets import ConnectionClosed
from websockets.asyncio.client import ClientConnection

from vision_bench.engine.realtime.protocol import Deadlines
from vision_bench.media.marks import read_marks
from vision_bench.wire.realtime.control import PING, STOP, camera_interaction
from vision_bench.wire.realtime.marks import event_digest
from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth

SECOND = 1_000_000_000
AHEAD = camera_interaction(event_id="ahead", translation=(0.0, 0.0, 0.05)).to_message()
PROMPT: Json = {
    "type": "session.interaction",
    "interaction": {"event_id": "rain", "event": {"prompt": "rain begins"}, "transition_chunks": 2},
}


def at_chunk(index: int, *answers: Any) -> Callable[[Json], list[Any] | None]:
    """Answer the metadata of chunk ``index``."""
    return lambda message: list(answers) if message.get("transport_chunk_index") == index else None


async def began(socket: ClientConnection, message: Json) -> str:
    """Start a session; its request id."""
    await socket.send(json.dumps(message))
    answer = json.loads(await socket.recv())
    assert answer["type"] == "video.start"
    return str(answer["request_id"])


async def session(rig: RealtimeRig, message: Json, **options: Any) -> Seen:
    """A whole one."""
    async with rig.connect() as socket:
        return await play(socket, message, **options)


async def chunks_of(rig: RealtimeRig, request_id: str) -> list[ChunkTruth]:
    """What the server says of a session's binary frames."""
    return [one for one in await rig.truth() if isinstance(one, ChunkTruth) and one.request_id == request_id]


async def test_the_second_session_waits_its_turn() -> None:
    """It is told video.start at once and generated when the first one is through; the truth tells how long it took."""
    async with realtime_engine(fast(ttfc_ms=1000, chunk_ms=50)) as rig, rig.connect() as one, rig.connect() as two:
        first = await began(one, start_message(chunks=3))
        second = await began(two, start_message(chunks=2))
        seen = await asyncio.gather(play(one), play(two))
        firsts, seconds = await chunks_of(rig, first), await chunks_of(rig, second)
    assert [one.types[-1] for one in seen] == ["session.done"] * 2
    assert seconds[0].slot_ns >= firsts[-1].due_ns
    assert seconds[0].start_read_ns < firsts[0].sent_ns  # and video.start came before this was asked for
    assert seconds[0].due_ns == seconds[0].slot_ns + SECOND


async def test_who_leaves_while_waiting_still_costs_a_first_chunk() -> None:
    """The server notices when it sends: the third session gets the slot one first chunk after the first one's end."""
    async with realtime_engine(fast(ttfc_ms=300, chunk_ms=10)) as rig, rig.connect() as one, rig.connect() as three:
        first = await began(one, start_message(chunks=2))
        async with rig.connect() as two:
            ghost = await began(two, start_message(chunks=2))
        third = await began(three, start_message(chunks=2))
        await asyncio.gather(play(one), play(three))
        firsts, thirds = await chunks_of(rig, first), await chunks_of(rig, third)
        assert await chunks_of(rig, ghost) == []
    assert thirds[0].slot_ns - firsts[-1].due_ns >= 0.3 * SECOND


async def test_who_stops_while_waiting_costs_nothing() -> None:
    """Done at once, stopped, nothing sent; the first session goes on and the third one follows it."""
    async with realtime_engine(fast(ttfc_ms=1000, chunk_ms=10)) as rig, rig.connect() as one, rig.connect() as two:
        first = await began(one, start_message(chunks=2))
        await began(two, start_message(chunks=2))
        stopped = await play(two, STOP)
        stopped_ns = time.monotonic_ns()
        assert (await play(one)).types[-1] == "session.done"
        firsts = await chunks_of(rig, first)
    assert stopped_ns < firsts[0].sent_ns  # it did not wait for the slot
    done = stopped.messages[-1]
    assert (done["type"], done["chunks"], done["stopped"]) == ("session.done", 0, True)


async def test_who_waits_in_silence_dies_of_the_stall_and_who_pings_lives() -> None:
    """An error and then done, stopped, for the one; a whole session for the other, which pings while it waits."""
    settings = fast(ttfc_ms=700, chunk_ms=10, deadlines=Deadlines(stall_seconds=0.5))

    async def play_pinging(socket: ClientConnection) -> Seen:
        async def ping() -> None:
            with suppress(ConnectionClosed):
                while True:
                    await socket.send(json.dumps(PING))
                    await asyncio.sleep(0.05)

        pinging = asyncio.create_task(ping())
        seen = await play(socket)
        await pinging  # it ends with the connection
        return seen

    async with (
        realtime_engine(settings) as rig,
        rig.connect() as one,
        rig.connect() as two,
        rig.connect() as three,
    ):
        for socket in (one, two, three):
            await began(socket, start_message(chunks=1))
        seen = await asyncio.gather(play_pinging(one), play(two), play_pinging(three))
    assert [one.types[-1] for one in seen] == ["session.done"] * 3
    assert [one.messages[-1]["stopped"] for one in seen] == [False, True, False]
    assert seen[1].errors == ["Stall timeout: no generation progress"]
    assert seen[1].types[-2:] == ["error", "session.done"]


async def test_a_stop_ends_without_trailer_and_loses_a_picture() -> None:
    """Done with stopped, and one picture fewer can be decoded than was announced; the slot is free for the next."""
    async with realtime_engine(fast(chunk_ms=100)) as rig:
        seen = await session(rig, start_message(chunks=9), react=at_chunk(1, STOP))
        after = await session(rig, start_message(chunks=1))
    assert (seen.messages[-1]["type"], seen.messages[-1]["stopped"]) == ("session.done", True)
    assert {one["kind"] for one in seen.metadata} == {"media"}
    assert len(decoded(seen.media)) == sum(one["num_frames"] for one in seen.metadata) - 1
    assert seen.messages[-1]["chunks"] == len(seen.media)
    assert after.messages[-1]["stopped"] is False


async def test_a_client_that_leaves_in_mid_chunk_holds_the_slot_until_the_next_is_sent() -> None:
    """The next session gets the slot when the chunk that was being made is due, not before."""
    async with realtime_engine(fast(chunk_ms=300)) as rig:
        async with rig.connect() as gone:
            left = await began(gone, start_message(chunks=20))
            while not isinstance(await gone.recv(), bytes):
                pass
            gone.transport.abort()
        async with rig.connect() as socket:
            request_id = await began(socket, start_message(chunks=1))
            await play(socket)
        last = (await chunks_of(rig, left))[-1]
        after = await chunks_of(rig, request_id)
    assert after[0].slot_ns >= last.due_ns + 0.3 * SECOND


async def test_a_binary_message_makes_the_session_deaf() -> None:
    """No pong, no stop: the session goes on to its own end."""
    async with realtime_engine(fast(chunk_ms=50)) as rig:
        seen = await session(
            rig, start_message(chunks=4), react=at_chunk(0, b"\x00", json.dumps(PING), json.dumps(STOP))
        )
    assert "session.pong" not in seen.types
    assert (seen.messages[-1]["chunks"], seen.messages[-1]["stopped"]) == (5, False)


async def test_a_rollout_of_one_chunk_numbers_nothing() -> None:
    """The only chunk's generation index is null; a trailer follows."""
    async with realtime_engine() as rig:
        seen = await session(rig, start_message(chunks=1))
    assert [(one["kind"], one["generation_chunk_index"]) for one in seen.metadata] == [
        ("media", None),
        ("trailer", None),
    ]
    assert len(decoded(seen.media)) == 9


async def test_the_echo_holds_what_was_asked_and_the_rate_as_a_float() -> None:
    """video.start repeats the picture and fills defaults in; without a rate 24 is used and not said."""
    message = start_message(chunks=1, fps=15.5)
    async with realtime_engine() as rig:
        config = (await session(rig, message)).messages[0]["config"]
        silent = (await session(rig, start_message(chunks=1, fps=None))).messages[0]["config"]
    assert config["image_reference"] == message["image_reference"]
    assert (config["fps"], config["num_outputs_per_prompt"]) == (15.5, 1)
    assert "fps" not in silent


async def test_a_camera_event_moves_the_picture_from_the_chunk_that_says_so() -> None:
    """Still before, in motion after; the id is started once, active to the end, and in the pixels of those chunks."""
    async with realtime_engine(fast(chunk_ms=150)) as rig:
        seen = await session(rig, start_message(chunks=9), react=at_chunk(0, AHEAD))
        truth = [one for one in await rig.truth() if isinstance(one, EventTruth)]
        chunks = await chunks_of(rig, seen.messages[0]["request_id"])
    assert seen.of_type("session.interaction.queued")[0]["event_id"] == "ahead"
    started = [one["transport_chunk_index"] for one in seen.metadata if one["started_event_ids"]]
    assert len(started) == 1
    first = started[0]
    assert first >= 3  # 3 on a machine that answers within one interval
    media = seen.metadata[:-1]
    assert [one["active_event_ids"] for one in media] == [["ahead"] if n >= first else [] for n in range(9)]
    assert truth == [EventTruth(seen.messages[0]["request_id"], "ahead", truth[0].read_ns, chunks[first].sent_ns)]
    pictures = decoded(seen.media)
    marks = [read_marks(picture) for picture in pictures]
    assert all(mark is not None for mark in marks)
    digests = [mark.event_digests for mark in marks if mark is not None]
    assert digests == [(event_digest("ahead"),) if (n + 3) // 12 >= first else () for n in range(len(pictures))]
    scene = [picture[48:].astype(int) for picture in pictures]
    still = abs(scene[12 * first - 4] - scene[0]).mean()
    assert abs(scene[-1] - scene[0]).mean() > 5 * still + 5


async def test_a_prompt_event_is_refused_by_a_model_that_knows_the_camera_alone() -> None:
    """Acknowledged, and then the session's end; the next one is served."""
    async with realtime_engine(fast(chunk_ms=200)) as rig:
        seen = await session(rig, start_message(chunks=9), react=at_chunk(0, PROMPT))
        after = await session(rig, start_message(chunks=1))
    assert seen.types[-2:] == ["session.interaction.queued", "error"]
    assert seen.errors == ["Unsupported interaction modality: prompt"]
    assert after.types[-1] == "session.done"


async def test_a_prompt_event_starts_and_completes_where_prompts_are_known() -> None:
    """Two chunks of transition: started on the first, completed on the second, then gone. The same id is a conflict."""
    settings = fast(chunk_ms=150, capabilities=frozenset({"camera", "prompt"}))
    async with realtime_engine(settings) as rig:
        seen = await session(rig, start_message(chunks=9), react=at_chunk(0, PROMPT, PROMPT))
    (conflict,) = seen.of_type("error")
    assert (conflict["code"], conflict["event_id"]) == ("event_id_conflict", "rain")
    first = next(one["transport_chunk_index"] for one in seen.metadata if one["started_event_ids"])
    told = [(one["active_event_ids"], one["completed_event_ids"]) for one in seen.metadata[first : first + 3]]
    assert told == [(["rain"], []), (["rain"], ["rain"]), ([], [])]
    colours = [colour.astype(int) for colour in decoded_colour(seen.media)]
    assert abs(colours[12 * first - 4] - colours[0]).mean() < 2  # the last picture before it
    assert abs(colours[-1] - colours[0]).mean() > 5


async def test_an_event_in_the_last_chunk_ends_the_session() -> None:
    """Acknowledged, and then an error instead of the chunk that was being made."""
    async with realtime_engine(fast(chunk_ms=500)) as rig:
        seen = await session(rig, start_message(chunks=2), react=at_chunk(0, AHEAD))
    assert seen.types[-2:] == ["session.interaction.queued", "error"]
    assert seen.errors == ["No active request for interaction 'ahead'"]


async def test_an_event_of_a_waiting_session_ends_it() -> None:
    """Acknowledged although the session waits for the slot, and then an error; the running one is not touched."""
    async with realtime_engine(fast(ttfc_ms=1000)) as rig, rig.connect() as one, rig.connect() as two:
        await began(one, start_message(chunks=1))
        await began(two, start_message(chunks=9))
        waiting = await play(two, AHEAD)
        running = await play(one)
    assert waiting.types == ["session.interaction.queued", "error"]
    assert running.types[-1] == "session.done"


async def test_a_stall_comes_late_and_the_truth_says_that_it_was_meant() -> None:
    """The chunk is due later by the amount."""
    async with realtime_engine(fast("stall@1=400")) as rig:
        seen = await session(rig, start_message(chunks=3))
        chunks = await chunks_of(rig, seen.messages[0]["request_id"])
    assert seen.types[-1] == "session.done"
    assert chunks[1].due_ns - chunks[0].due_ns == 0.4 * SECOND
    assert chunks[1].sent_ns >= chunks[1].due_ns


async def test_an_endless_stall_ends_by_the_stall_clock() -> None:
    """Error and done, stopped; the next session, which the fault does not name, is served."""
    async with realtime_engine(fast("stall@1#0", deadlines=Deadlines(stall_seconds=1.0))) as rig:
        seen = await session(rig, start_message(chunks=3))
        after = await session(rig, start_message(chunks=3))
    assert (seen.types[-2:], seen.messages[-1]["stopped"]) == (["error", "session.done"], True)
    assert (after.types[-1], after.messages[-1]["stopped"]) == ("session.done", False)


async def test_faults_end_or_thin_a_session_as_they_say() -> None:
    """A late error, an error in mid-session, a short rollout, a dropped connection; the fifth session is whole."""
    faults = ("error@0#0", "error@2#1", "short@2#2", "drop@1#3")
    async with realtime_engine(fast(*faults)) as rig:
        late, broken, short, dropped, whole = [await session(rig, start_message(chunks=4)) for _ in range(5)]
    assert (late.types, late.errors) == (["video.start", "error"], ["Injected failure at chunk 0"])
    assert (len(broken.media), broken.errors) == (2, ["Injected failure at chunk 2"])
    done = short.messages[-1]
    assert (done["type"], done["chunks"], done["stopped"]) == ("session.done", 3, False)
    assert len(decoded(short.media)) == 21
    assert (dropped.types, dropped.close_code) == (["video.start", "video.chunk_metadata"], 1006)
    assert whole.messages[-1]["chunks"] == 5


async def test_an_empty_chunk_is_not_announced_and_its_pictures_come_with_the_next() -> None:
    """Also when it is the last: then they come with the trailer. Nothing is lost."""
    async with realtime_engine(fast("empty@0", "empty@3")) as rig:
        seen = await session(rig, start_message(chunks=4))
    assert [(one["kind"], one["generation_chunk_index"]) for one in seen.metadata] == [
        ("media", 1),
        ("media", 2),
        ("trailer", None),
    ]
    assert [one["transport_chunk_index"] for one in seen.metadata] == [0, 1, 2]
    assert len(decoded(seen.media)) == 45

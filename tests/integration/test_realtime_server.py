"""The reference server for generated video over real sockets: whole sessions."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess

import websockets
from tests.integration.engine_rig import ENGINE_COMMAND
from tests.integration.realtime_rig import Json, decoded, fast, play, realtime_engine, start_message

from vision_bench.media.marks import read_marks
from vision_bench.wire.realtime.truth import ChunkTruth


async def test_a_session_is_played_whole() -> None:
    """Start, three chunks, a trailer, done, no close frame; the joined frames decode to every announced picture."""
    async with realtime_engine() as rig, rig.connect() as socket:
        seen = await play(socket, start_message(chunks=3))
        truth = await rig.truth()
    assert seen.types == ["video.start", *["video.chunk_metadata"] * 4, "session.done"]
    assert [one["num_frames"] for one in seen.metadata] == [9, 12, 12, 0]
    assert [one["generation_chunk_index"] for one in seen.metadata] == [0, 1, 2, None]
    assert [one["transport_chunk_index"] for one in seen.metadata] == [0, 1, 2, 3]
    assert [one["byte_length"] for one in seen.metadata] == [len(data) for data in seen.media]
    done = seen.messages[-1]
    assert (done["chunks"], done["stopped"], seen.close_code) == (4, False, 1006)
    marks = [read_marks(luma) for luma in decoded(seen.media)]
    assert [(mark.frame, mark.chunk) for mark in marks if mark] == [(n, (n + 3) // 12) for n in range(33)]
    assert [(type(one), one.transport_chunk_index) for one in truth if isinstance(one, ChunkTruth)] == [
        (ChunkTruth, index) for index in range(4)
    ]


async def test_declared_times_are_kept() -> None:
    """No chunk is sent before it is due."""
    async with realtime_engine(fast(ttfc_ms=150, chunk_ms=60)) as rig, rig.connect() as socket:
        await play(socket, start_message(chunks=3))
        truth = [one for one in await rig.truth() if isinstance(one, ChunkTruth)]
    assert all(one.sent_ns >= one.due_ns for one in truth)
    assert truth[0].due_ns - truth[0].slot_ns == 150_000_000


async def test_the_command_serves_and_stops_in_mid_session() -> None:
    """`vision-bench engine --realtime` says where; on SIGTERM the client is told 1012 and the process ends."""
    options = ("--port", "0", "--width", "256", "--height", "192", "--ttfc-ms", "0", "--chunk-ms", "100")
    process = await asyncio.create_subprocess_exec(*ENGINE_COMMAND, "--realtime", *options, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        found = re.search(r"(ws://\S+) as lingbot-world", (await process.stderr.readline()).decode())
        assert found
        async with websockets.connect(found[1], max_size=None, proxy=None) as socket:

            def stop(message: Json) -> None:
                if message["type"] == "video.chunk_metadata" and message["transport_chunk_index"] == 1:
                    process.send_signal(signal.SIGTERM)

            seen = await play(socket, start_message(chunks=10_000), react=stop)
        assert seen.close_code == 1012
        assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGTERM
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

"""A WHIP client that nobody here wrote: FFmpeg's, with an ICE, a DTLS and an H.264 packetizer of its own."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.integration.gateway_rig import until
from tests.integration.live_rig import level_of, live_gateway, live_of, new_stream, stream_of
from tests.integration.stub_upstream import stub_upstream

WITHIN_SECONDS = 90

# Picture after picture at once, each whole by itself: WebRTC has no B-frames, and a lost one must not be waited for.
ENCODER = ("libx264", "-profile:v", "baseline", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "15", "-bf", "0")


def ffmpeg() -> str:
    """An ffmpeg that speaks WHIP; the test is skipped without one."""
    from imageio_ffmpeg import get_ffmpeg_exe

    program: str = get_ffmpeg_exe()
    muxers = subprocess.run([program, "-hide_banner", "-muxers"], capture_output=True, text=True, check=True).stdout
    if " whip " not in muxers:
        pytest.skip("this ffmpeg is older than 8 and has no WHIP; install a newer imageio-ffmpeg")
    return program


@asynccontextmanager
async def whip_client(program: str, publish: dict[str, Any]) -> AsyncIterator[asyncio.subprocess.Process]:
    """FFmpeg, publishing a white picture at its own pace; killed when the block is left and it still runs."""
    source = ["-re", "-f", "lavfi", "-i", "color=white:s=320x240:r=15"]
    target = ["-pix_fmt", "yuv420p", "-f", "whip", "-authorization", publish["token"], publish["url"]]
    client = await asyncio.create_subprocess_exec(
        *(program, "-nostdin", "-loglevel", "error", *source, "-c:v", *ENCODER, *target),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield client
    finally:
        if client.returncode is None:
            client.kill()
        await client.wait()


async def test_ffmpeg_publishes_and_leaves() -> None:
    """Its offer is answered, its white picture is in the ring, and at Ctrl-C its DELETE ends the session and leaves the
    stream with its frames."""
    program = ffmpeg()
    async with stub_upstream() as stub, live_gateway(stub) as rig:
        made = await new_stream(rig)
        stream = stream_of(rig, made["id"])
        async with whip_client(program, made["publish"]) as client:
            await until(
                lambda: stream.ring.next_index > 5 or client.returncode is not None, within_seconds=WITHIN_SECONDS
            )
            newest = stream.ring.newest
            assert newest is not None, f"no frame came; the client ended with {client.returncode}"
            assert (newest.width, newest.height) == (320, 240)
            assert level_of(newest.jpeg) > 220
            assert live_of(rig).feed_of(stream.id) is not None
            client.send_signal(signal.SIGINT)
            await until(lambda: live_of(rig).feed_of(stream.id) is None, within_seconds=WITHIN_SECONDS)
        metrics = (await rig.client.get("/metrics")).text
        session = 'route="/live/whip/{stream_id}/{session_id}"'
        assert any(session in line and 'status_class="2xx"' in line for line in metrics.splitlines())
        assert stream.is_active and len(stream.ring) > 5

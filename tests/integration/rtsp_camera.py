"""A small RTSP camera on 127.0.0.1: VP8 over one TCP connection, as much of RFC 2326 as a player asks for."""

from __future__ import annotations

import asyncio
import fractions
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import av
import numpy as np
from aiortc.codecs.vpx import Vp8Encoder

SDP = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n"
SDP += "a=rtpmap:96 VP8/90000\r\na=control:track0\r\n"


@dataclass
class RtspCamera:
    """``frames_each``: after so many pictures it hangs up; None: never."""

    port: int = 0
    frames_each: int | None = None
    fps: int = 20
    connections: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """What is to be pulled; its user and path must never be repeated."""
        return f"rtsp://someone:hush@127.0.0.1:{self.port}/secret-path"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests; play when asked to."""
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                number = next(line.split(":")[1].strip() for line in lines if line.lower().startswith("cseq"))
                answer, body = self._answer(lines[0].split()[0])
                length = f"Content-Length: {len(body)}\r\n" if body else ""
                writer.write(f"RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{answer}{length}\r\n{body}".encode())
                await writer.drain()
                if lines[0].startswith("PLAY"):
                    await self._play(writer)
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    def _answer(self, method: str) -> tuple[str, str]:
        return {
            "OPTIONS": ("Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n", ""),
            "DESCRIBE": ("Content-Type: application/sdp\r\n", SDP),
            "SETUP": ("Session: 7\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n", ""),
        }.get(method, ("Session: 7\r\n", ""))

    async def _play(self, writer: asyncio.StreamWriter) -> None:
        encoder, sequence, number = Vp8Encoder(), 0, 0
        while self.frames_each is None or number < self.frames_each:
            picture = np.full((48, 64, 3), 40 + number % 100, np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = number * 90_000 // self.fps, fractions.Fraction(1, 90_000)
            payloads, timestamp = await asyncio.to_thread(encoder.encode, frame)
            for index, payload in enumerate(payloads):
                marker = 0x80 if index == len(payloads) - 1 else 0
                packet = struct.pack("!BBHII", 0x80, marker | 96, sequence, timestamp % 2**32, 5) + payload
                writer.write(struct.pack("!cBH", b"$", 0, len(packet)) + packet)
                sequence = (sequence + 1) % 2**16
            await writer.drain()
            await asyncio.sleep(1 / self.fps)
            number += 1


@asynccontextmanager
async def rtsp_camera(*, frames_each: int | None = None) -> AsyncIterator[RtspCamera]:
    """A running camera on a free port."""
    camera = RtspCamera(frames_each=frames_each)
    server = await asyncio.start_server(camera.serve, "127.0.0.1", 0)
    camera.port = server.sockets[0].getsockname()[1]
    try:
        yield camera
    finally:
        server.close()
        for task in tuple(camera._tasks):
            task.cancel()
        await asyncio.gather(*camera._tasks, return_exceptions=True)

"""A camera over WebRTC on 127.0.0.1: stock aiortc as a sender, whose frames carry their number as brightness."""

from __future__ import annotations

import asyncio
import fractions
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

import av
import httpx
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription, VideoStreamTrack
from aiortc.mediastreams import MediaStreamError

from vision_bench.live.whip import listen_on

LEVELS = 24
"""Numbers that brightness tells apart; a later frame begins anew."""


def brightness(number: int) -> int:
    """The grey of frame ``number``."""
    return 20 + 9 * (number % LEVELS)


def number_of(level: float) -> int:
    """The frame number, modulo ``LEVELS``, of a picture of that mean grey."""
    return round((level - 20) / 9) % LEVELS


class NumberedTrack(VideoStreamTrack):
    """Frames at an even rate. ``captured_ns`` holds when each was made, on this process' monotonic clock."""

    def __init__(self, *, fps: float, width: int = 640, height: int = 360, frames: int | None = None) -> None:
        super().__init__()
        self._step_seconds = 1 / fps
        self._size = width, height
        self._most = frames
        self._began: float | None = None
        self.captured_ns: list[int] = []

    async def recv(self) -> av.VideoFrame:
        number = len(self.captured_ns)
        if self.readyState != "live" or (self._most is not None and number >= self._most):
            await asyncio.sleep(3600)
            raise MediaStreamError
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        await asyncio.sleep(max(0.0, self._began + number * self._step_seconds - now))
        width, height = self._size
        picture = np.full((height, width, 3), brightness(number), np.uint8)
        picture[::16, :, 0] ^= 3  # a little texture, so that a key frame takes more than one packet
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
        frame.pts, frame.time_base = round(number * self._step_seconds * 90_000), fractions.Fraction(1, 90_000)
        self.captured_ns.append(time.monotonic_ns())
        return frame


@dataclass
class Camera:
    """A publishing camera: its connection, its track, and where its session is."""

    peer: RTCPeerConnection
    track: NumberedTrack
    session_url: str
    headers: dict[str, str] = field(default_factory=dict)


async def offer_of(peer: RTCPeerConnection) -> str:
    """The offer of a camera that tells all its candidates at once."""
    await peer.setLocalDescription(await peer.createOffer())
    return str(peer.localDescription.sdp)


def sending_peer(track: Any, *, codec: str = "VP8") -> RTCPeerConnection:
    """A connection that sends ``track`` in one codec, over loopback alone."""
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    transceiver = peer.addTransceiver(track, direction="sendonly")
    wanted = [each for each in RTCRtpSender.getCapabilities("video").codecs if each.name.upper() == codec]
    transceiver.setCodecPreferences(wanted)
    listen_on(transceiver, ["127.0.0.1"])
    return peer


@asynccontextmanager
async def camera(
    publish: dict[str, Any], *, fps: float = 30, codec: str = "VP8", frames: int | None = None, **size: int
) -> AsyncIterator[Camera]:
    """Publish by WHIP; ``publish`` is that of the stream's creation."""
    track = NumberedTrack(fps=fps, frames=frames, **size)
    peer = sending_peer(track, codec=codec)
    headers = {"Authorization": f"Bearer {publish['token']}"}
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        try:
            answer = await http.post(
                publish["url"], content=await offer_of(peer), headers={**headers, "Content-Type": "application/sdp"}
            )
            assert answer.status_code == 201, answer.text
            await peer.setRemoteDescription(RTCSessionDescription(sdp=answer.text, type="answer"))
            yield Camera(peer, track, urljoin(publish["url"], answer.headers["location"]), headers)
        finally:
            await peer.close()

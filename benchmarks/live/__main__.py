"""From a camera's capture to a stream's ring over WebRTC on loopback: stock aiortc's receiver, and ours.

    python -m benchmarks.live [--rounds 2] [--seconds 10] [--quick] [--out benchmarks/live/result.json]

Sender and receivers share one process and its clock. The sender is stock aiortc in both arms; each frame's brightness
is its number, which is read off the JPEG in the ring. Arms take turns, and every other round begins with the other one.
"""

from __future__ import annotations

import argparse
import asyncio
import fractions
import io
import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import av
import numpy as np
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCPeerConnection,
    RTCRtpSender,
    RTCSessionDescription,
    VideoStreamTrack,
)
from aiortc.mediastreams import MediaStreamError
from PIL import Image

from vision_bench.bench.rundir import write_json
from vision_bench.live.inlet import FrameLimits, Inlet
from vision_bench.live.pictures import JpegEncoder
from vision_bench.live.registry import Limits, Registry
from vision_bench.live.whip import WhipSession, listen_on
from vision_bench.stats import percentile

WIDTH, HEIGHT = 640, 360
LOOPBACK = ["127.0.0.1"]
LEVELS = 24
CODECS, RATES = ("VP8", "H264"), (2, 10, 30)
WARM_UP_FRAMES = 2
"""The first frames of a connection are left out: they wait for codecs to be made."""
SETTLE_SECONDS = 2.0
STAGES = {
    "encode_and_send": ("captured", "arrived"),
    "release": ("arrived", "released"),
    "decode": ("released", "decoded"),
    "jpeg_and_store": ("decoded", "stored"),
}
"""Of our side; the first is the sender's, which is the same on both."""


class NumberedTrack(VideoStreamTrack):
    """Frames at an even rate over a moving texture, each as bright as its number says."""

    def __init__(self, fps: float, frames: int) -> None:
        super().__init__()
        self._step_seconds = 1 / fps
        self._most = frames
        self._began: float | None = None
        self.captured_ns: list[int] = []
        self.all_captured = asyncio.Event()
        # Patches of 8x8, as smooth as most of a camera's picture: noise in every pixel would time the encoder.
        patches = np.random.default_rng(5).integers(-12, 13, (HEIGHT // 8, WIDTH // 8 + 8), np.int16)
        self._texture = np.kron(patches, np.ones((8, 8), np.int16))

    async def recv(self) -> av.VideoFrame:
        number = len(self.captured_ns)
        if number >= self._most:
            self.all_captured.set()
            await asyncio.sleep(3600)
            raise MediaStreamError
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        shift = number % 64
        grey = 20 + 9 * (number % LEVELS) + self._texture[:, shift : shift + WIDTH]
        planes = np.concatenate([grey.clip(0, 255).astype(np.uint8), np.full((HEIGHT // 2, WIDTH), 128, np.uint8)])
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts, frame.time_base = round(number * self._step_seconds * 90_000), fractions.Fraction(1, 90_000)
        await asyncio.sleep(max(0.0, self._began + number * self._step_seconds - time.monotonic()))
        self.captured_ns.append(time.monotonic_ns())
        return frame


@dataclass(slots=True)
class Arm:
    """What one receiver stored: of each frame its number modulo ``LEVELS`` and when it was in the ring."""

    stored: list[tuple[int, int]] = field(default_factory=list)
    readings: list[dict[str, int]] = field(default_factory=list)
    """Of each frame, where there are some: when it had arrived, was released, decoded and stored."""
    dropped: dict[str, int] = field(default_factory=dict)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Capture to ring: stock aiortc and ours.")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="Of each round; at 2 frames a second twice as long."
    )
    parser.add_argument("--quick", action="store_true", help="One codec and rate for two seconds: does it still run?")
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    cases = [("VP8", 10)] if flags.quick else [(codec, rate) for codec in CODECS for rate in RATES]
    seconds, rounds = (2.0, 1) if flags.quick else (flags.seconds, flags.rounds)
    result = {
        "aiortc": version("aiortc"),
        "av": version("av"),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "size": [WIDTH, HEIGHT],
        "cases": [asyncio.run(case(codec, rate, seconds=seconds, rounds=rounds)) for codec, rate in cases],
        "load_after": os.getloadavg()[0],
    }
    print(json.dumps(result, indent=1))
    if flags.out:
        write_json(flags.out, result)


async def case(codec: str, fps: int, *, seconds: float, rounds: int) -> dict[str, Any]:
    """One codec at one rate, both arms in turn."""
    frames = round(fps * seconds * (2 if fps < 5 else 1))
    arms: dict[str, Callable[..., Awaitable[Arm]]] = {"stock": stock, "ours": ours}
    delays_ms: dict[str, list[float]] = {name: [] for name in arms}
    missing = dict.fromkeys(arms, 0)
    dropped: Counter[str] = Counter()
    stages_ms: dict[str, list[float]] = {name: [] for name in STAGES}
    for round_ in range(rounds):
        for name in list(arms) if round_ % 2 == 0 else list(arms)[::-1]:
            track = NumberedTrack(fps, frames)
            arm = await arms[name](track, codec)
            dropped.update(arm.dropped)
            found = matched(track.captured_ns, arm.stored)
            delays_ms[name] += [delay for number, delay in found if number >= WARM_UP_FRAMES]
            missing[name] += frames - len(found)
            for (number, _), readings in zip(found, arm.readings, strict=False):
                if number >= WARM_UP_FRAMES:
                    took_ms = stages({"captured": track.captured_ns[number], **readings})
                    for stage, ms in took_ms.items():
                        stages_ms[stage].append(ms)
    told = {
        "codec": codec,
        "fps": fps,
        "load": os.getloadavg()[0],
        "dropped_by_ours": dict(dropped),
        "stages_of_ours": {stage: shown(values) for stage, values in stages_ms.items()},
        "frames_sent": frames * rounds,
        **{name: {**shown(delays_ms[name]), "not_in_ring": missing[name]} for name in arms},
    }
    print(json.dumps(told), file=sys.stderr, flush=True)
    return told


def stages(readings: dict[str, int]) -> dict[str, float]:
    """Each stage of one frame, in milliseconds."""
    return {name: (readings[end] - readings[start]) / 1e6 for name, (start, end) in STAGES.items()}


def shown(values: list[float]) -> dict[str, Any]:
    """Count and quantiles in milliseconds."""
    at = {f"p{share:.0%}"[:-1] + "_ms": percentile(values, share) for share in (0.5, 0.95)} if values else {}
    return {"frames": len(values), **at, "least_ms": min(values, default=None), "most_ms": max(values, default=None)}


def matched(captured_ns: list[int], stored: list[tuple[int, int]]) -> list[tuple[int, float]]:
    """(number, capture to ring in ms) of each stored frame: the next one of its brightness that was captured before."""
    found: list[tuple[int, float]] = []
    after = 0
    for level, at_ns in stored:
        number = after + (level - after) % LEVELS
        if number >= len(captured_ns) or captured_ns[number] > at_ns:
            raise AssertionError(f"a frame of brightness {level} was stored before it was captured")
        found.append((number, (at_ns - captured_ns[number]) / 1e6))
        after = number + 1
    return found


async def ours(track: NumberedTrack, codec: str) -> Arm:
    """The gateway's own receiver, without HTTP around it."""
    inlet = _inlet()
    session = WhipSession(inlet)
    async with _Sender(track, codec) as sender:
        await session.open(await sender.offer(), addresses=LOOPBACK)
        await sender.answered(session.answer)
        await track.all_captured.wait()
        await asyncio.sleep(SETTLE_SECONDS)
    await session.close()
    ring = inlet.stream.ring
    return Arm(
        [(level_of(frame.jpeg), frame.received_ns) for frame in ring],
        [{name: stamp.ns for name, stamp in frame.stamps.items()} for frame in ring],
        dict(inlet.stream.dropped),
    )


async def stock(track: NumberedTrack, codec: str) -> Arm:
    """aiortc as its examples use it: ``track.recv()``, then the same JPEG and the same ring."""
    inlet = _inlet()
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    tasks: list[asyncio.Task[None]] = []
    encoder = JpegEncoder()

    async def read(remote: MediaStreamTrack) -> None:
        while True:
            frame = await remote.recv()
            jpeg, width, height = await asyncio.to_thread(encoder.encode, frame)  # type: ignore[arg-type]
            inlet.store(jpeg, width=width, height=height, at_ns=time.monotonic_ns())

    peer.on("track", lambda remote: tasks.append(asyncio.create_task(read(remote))))
    async with _Sender(track, codec) as sender:
        await peer.setRemoteDescription(RTCSessionDescription(sdp=await sender.offer(), type="offer"))
        for transceiver in peer.getTransceivers():
            listen_on(transceiver, LOOPBACK)
        await peer.setLocalDescription(await peer.createAnswer())
        await sender.answered(peer.localDescription.sdp)
        await track.all_captured.wait()
        await asyncio.sleep(SETTLE_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await peer.close()
    return Arm([(level_of(frame.jpeg), frame.received_ns) for frame in inlet.stream.ring])


class _Sender:
    """Stock aiortc, sending one track in one codec."""

    def __init__(self, track: NumberedTrack, codec: str) -> None:
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        transceiver = self._peer.addTransceiver(track, direction="sendonly")
        wanted = [each for each in RTCRtpSender.getCapabilities("video").codecs if each.name.upper() == codec]
        transceiver.setCodecPreferences(wanted)
        listen_on(transceiver, LOOPBACK)

    async def __aenter__(self) -> _Sender:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._peer.close()

    async def offer(self) -> str:
        await self._peer.setLocalDescription(await self._peer.createOffer())
        return str(self._peer.localDescription.sdp)

    async def answered(self, answer: str) -> None:
        await self._peer.setRemoteDescription(RTCSessionDescription(sdp=answer, type="answer"))


def _inlet() -> Inlet:
    stream = Registry(Limits()).create("bench")
    return Inlet(stream, FrameLimits(), clock_id="bench")


def level_of(jpeg: bytes) -> int:
    """The number, modulo ``LEVELS``, that a picture's brightness shows."""
    mean = float(np.asarray(Image.open(io.BytesIO(jpeg)).convert("L")).mean())
    # The camera's levels are video's, 16 to 235; the JPEG's are 0 to 255.
    return round(((mean * 219 / 255 + 16) - 20) / 9) % LEVELS


if __name__ == "__main__":
    main()

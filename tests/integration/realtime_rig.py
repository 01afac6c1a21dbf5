"""A reference server for generated video on a loopback port, in the test's own event loop, and a client that records.

::

    async with realtime_engine(fast()) as rig:
        async with rig.connect() as socket:
            seen = await play(socket, start_message(chunks=3))
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import av
import httpx
import numpy as np
import websockets
from numpy.typing import NDArray
from PIL import Image
from tests.integration.embedded_server import EmbeddedServer
from websockets.asyncio.client import ClientConnection

from vision_bench.engine.listener import listen
from vision_bench.engine.realtime.late import Deployment
from vision_bench.engine.realtime.run import server_for
from vision_bench.engine.realtime.server import PATH
from vision_bench.engine.realtime.settings import RealtimeSettings
from vision_bench.engine.realtime.timing import Fault, TimingSettings, read_fault
from vision_bench.wire.realtime.rollout import num_frames_for_chunks
from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth, read_truth

WIDTH, HEIGHT = 256, 192
MODEL = "lingbot-world"
Json = dict[str, Any]


def fast(
    *faults: str, ttfc_ms: float = 0.0, chunk_ms: float = 0.0, ramp_chunks: int = 0, **options: Any
) -> RealtimeSettings:
    """Small pictures, and times of the machine's own unless declared; ``faults`` as the command line takes them."""
    parsed: tuple[Fault, ...] = tuple(read_fault(fault) for fault in faults)
    return RealtimeSettings(
        deployment=Deployment(WIDTH, HEIGHT),
        timing=TimingSettings(ttfc_ms=ttfc_ms, chunk_ms=chunk_ms, ramp_chunks=ramp_chunks, faults=parsed),
        **options,
    )


def picture_url(width: int = WIDTH, height: int = HEIGHT) -> str:
    """A picture of which every part looks different, as a ``data:`` URL."""
    cells = np.random.default_rng(7).integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8)
    image = Image.fromarray(cells).resize((width, height), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def start_message(*, chunks: int = 3, script: list[list[list[str]]] | None = None, **changes: Any) -> Json:
    """A session that the small deployment serves; a change to None leaves the field out."""
    message = {
        "type": "session.start",
        "model": MODEL,
        "prompt": "a quiet street",
        "image_reference": {"image_url": picture_url()},
        "width": WIDTH,
        "height": HEIGHT,
        "num_frames": num_frames_for_chunks(chunks),
        "fps": 16,
        "seed": 1,
        "extra_params": {"flow_shift": 5.0, **({} if script is None else {"camera_action_script": script})},
        **changes,
    }
    return {name: value for name, value in message.items() if value is not None}


@dataclass(slots=True)
class RealtimeRig:
    """A running server."""

    url: str
    """``http://127.0.0.1:PORT``"""
    client: httpx.AsyncClient

    @property
    def socket_url(self) -> str:
        """Of the WebSocket route."""
        return self.url.replace("http", "ws", 1) + PATH

    def connect(self, **options: Any) -> AbstractAsyncContextManager[ClientConnection]:
        """A client that takes messages of any size and sends no pings of its own."""
        options = {"max_size": None, "ping_interval": None, "proxy": None, **options}
        return websockets.connect(self.socket_url, **options)

    async def truth(self) -> list[ChunkTruth | EventTruth]:
        """What the server says it did."""
        page = await self.client.get("/truth")
        return [read_truth(json.loads(line)) for line in page.text.splitlines()]


@asynccontextmanager
async def realtime_engine(settings: RealtimeSettings | None = None) -> AsyncIterator[RealtimeRig]:
    """The server, from its start to its end."""
    listener = listen("127.0.0.1", 0)
    server = EmbeddedServer(server_for(settings or fast()).config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
            yield RealtimeRig(url, client)
    finally:
        server.should_exit = True
        await task


@dataclass(slots=True)
class Seen:
    """What a client got, in order."""

    messages: list[Json] = field(default_factory=list)
    media: list[bytes] = field(default_factory=list)
    close_code: int | None = None
    """1006: no close frame came."""

    def of_type(self, name: str) -> list[Json]:
        """The messages of that type."""
        return [message for message in self.messages if message["type"] == name]

    @property
    def metadata(self) -> list[Json]:
        """What announced the binary frames, trailer included."""
        return self.of_type("video.chunk_metadata")

    @property
    def errors(self) -> list[str]:
        """Words of the errors."""
        return [message["message"] for message in self.of_type("error")]

    @property
    def types(self) -> list[str]:
        """The types of all messages."""
        return [message["type"] for message in self.messages]


async def play(
    socket: ClientConnection,
    *messages: Json | str | bytes,
    react: Callable[[Json], Json | str | bytes | list[Json | str | bytes] | None] = lambda _: None,
    within_seconds: float = 60.0,
) -> Seen:
    """Send ``messages`` and take everything until the connection ends; ``react`` answers a message with others."""
    seen = Seen()
    try:
        async with asyncio.timeout(within_seconds):
            for one in messages:
                await socket.send(_raw(one))
            while True:
                frame = await socket.recv()
                if isinstance(frame, bytes):
                    seen.media.append(frame)
                    continue
                message = json.loads(frame)
                seen.messages.append(message)
                answer = react(message)
                for one in answer if isinstance(answer, list) else [answer]:
                    if one is not None:
                        await socket.send(_raw(one))
    except websockets.ConnectionClosed as closed:
        seen.close_code = closed.rcvd.code if closed.rcvd is not None else 1006
    return seen


def _raw(message: Json | str | bytes) -> str | bytes:
    return json.dumps(message) if isinstance(message, dict) else message


def decoded(media: list[bytes]) -> list[NDArray[np.uint8]]:
    """Brightness (H, W) of every picture that the joined frames hold."""
    return [planes[: planes.shape[0] * 2 // 3] for planes in _planes(media)]


def decoded_colour(media: list[bytes]) -> list[NDArray[np.uint8]]:
    """The colour planes of every picture, (H / 2, W), as the library packs them."""
    return [planes[planes.shape[0] * 2 // 3 :] for planes in _planes(media)]


def _planes(media: list[bytes]) -> list[NDArray[np.uint8]]:
    with av.open(io.BytesIO(b"".join(media))) as container:
        return [frame.to_ndarray(format="yuv420p") for frame in container.decode(video=0)]

"""A gateway with live streams, and what tests send into them."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from PIL import Image
from tests.integration.gateway_rig import Rig, gateway
from tests.integration.stub_upstream import StubUpstream

from vision_bench.gateway.live_server import LiveServer
from vision_bench.live.registry import Stream


@asynccontextmanager
async def live_gateway(upstream: StubUpstream | str, **settings: Any) -> AsyncIterator[Rig]:
    """As ``gateway``, with streams; cameras find it at 127.0.0.1."""
    async with gateway(upstream, live_enabled=True, live_ice_addresses="127.0.0.1", **settings) as rig:
        yield rig


def live_of(rig: Rig) -> LiveServer:
    """The streams of a running gateway."""
    live: LiveServer = rig.app.state.live
    return live


def stream_of(rig: Rig, stream_id: str) -> Stream:
    """One of its streams."""
    return live_of(rig).registry.by_id(stream_id)


async def new_stream(rig: Rig, **options: Any) -> dict[str, Any]:
    """The answer to a creation."""
    answer = await rig.client.post("/v1beta/streams", **options)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def jpeg(level: int = 128, *, width: int = 64, height: int = 48) -> bytes:
    """An even grey picture."""
    out = io.BytesIO()
    Image.fromarray(np.full((height, width), level, np.uint8)).convert("RGB").save(out, "JPEG", quality=90)
    return out.getvalue()


def level_of(picture: bytes) -> float:
    """The mean grey of a JPEG."""
    return float(np.asarray(Image.open(io.BytesIO(picture)).convert("L")).mean())


def put(rig: Rig, stream_id: str, *, count: int, step_ms: int = 100, size: tuple[int, int] = (64, 48)) -> None:
    """``count`` frames into a stream at once, ``step_ms`` apart on its clock, each a little lighter than the last."""
    ring = stream_of(rig, stream_id).ring
    first = ring.next_index
    origin_ns = ring.origin_ns if ring.origin_ns is not None else live_of(rig).clock()
    for index in range(first, first + count):
        frame = ring.append(
            jpeg(10 + index * 2 % 240, width=size[0], height=size[1]),
            width=size[0],
            height=size[1],
            at_ns=origin_ns + index * step_ms * 1_000_000,
            received_ns=live_of(rig).clock(),
        )
        assert frame is not None

"""Frames over a WebSocket into a running gateway, and a film published as a camera."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from tests.integration.gateway_rig import until
from tests.integration.live_rig import jpeg, level_of, live_gateway, live_of, new_stream, stream_of
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from vision_bench.client.publish import publish

NOWHERE = "http://127.0.0.1:9/v1"


def pushing(stream: dict[str, Any]) -> Any:
    """A connection that may publish."""
    headers = {"Authorization": f"Bearer {stream['publish']['token']}"}
    return connect(stream["publish"]["vision_bench"]["push_url"], additional_headers=headers, proxy=None)


async def test_a_pushed_picture_is_held_as_it_was_sent() -> None:
    """Byte for byte, answered with its index; a wrong one is answered with the reason, and the connection goes on."""
    async with live_gateway(NOWHERE, gateway_api_keys="ann") as rig:
        stream = await new_stream(rig, headers={"Authorization": "Bearer ann"})
        async with pushing(stream) as socket:
            await socket.send(jpeg(50))
            assert json.loads(await socket.recv())["frame_index"] == 0
            await socket.send(b"nonsense")
            assert json.loads(await socket.recv()) == {"type": "dropped", "reason": "not_a_jpeg"}
            await socket.send(jpeg(60))
            assert json.loads(await socket.recv())["frame_index"] == 1
        ring = stream_of(rig, stream["id"]).ring
        assert [frame.jpeg for frame in ring] == [jpeg(50), jpeg(60)]
        state = (
            await rig.client.get(f"/v1beta/streams/{stream['id']}", headers={"Authorization": "Bearer ann"})
        ).json()
        assert state["vision_bench"]["refused_frames"] == {"not_a_jpeg": 1}


async def test_a_camera_outlives_the_idle_time_of_a_connection() -> None:
    """The time without a request is one of HTTP: after four times as much of it the WebSocket still takes pictures."""
    async with live_gateway(NOWHERE, gateway_idle_seconds=0.3) as rig:
        stream = await new_stream(rig)
        async with pushing(stream) as socket:
            for index in range(5):
                await socket.send(jpeg(50 + index))
                assert json.loads(await socket.recv())["frame_index"] == index
                await asyncio.sleep(0.3)


async def test_a_browser_shows_its_token_as_a_subprotocol() -> None:
    """It cannot set headers; the server chooses the protocol, never the token."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        protocols = ["vision-bench.push.v1", f"token.{stream['publish']['token']}"]
        url = stream["publish"]["vision_bench"]["push_url"]
        async with connect(url, subprotocols=protocols, proxy=None) as socket:  # type: ignore[arg-type]
            assert socket.subprotocol == "vision-bench.push.v1"
            await socket.send(jpeg())
            assert json.loads(await socket.recv())["type"] == "stored"


@pytest.mark.parametrize("token", ["", "nonsense", "view"])
async def test_without_a_publish_token_nobody_gets_in(token: str) -> None:
    """403 before the connection is a WebSocket, for no token, a wrong one, and one for viewing."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        shown = live_of(rig).tokens.issue("view", stream["id"], seconds=60) if token == "view" else token
        headers = {"Authorization": f"Bearer {shown}"} if shown else {}
        url = stream["publish"]["vision_bench"]["push_url"]
        with pytest.raises(InvalidStatus) as refused:
            async with connect(url, additional_headers=headers, proxy=None):
                pass
        assert refused.value.response.status_code == 403


async def test_the_end_of_a_stream_ends_its_connection() -> None:
    """A deletion closes it with 1000 and a reason; a second connection of one stream closes the first with 4000."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        async with pushing(stream) as first:
            await first.send(jpeg())
            await first.recv()
            async with pushing(stream) as second:
                await second.send(jpeg())
                assert json.loads(await second.recv())["frame_index"] == 1
                with pytest.raises(ConnectionClosed) as replaced:
                    await asyncio.wait_for(first.recv(), 10)
                assert replaced.value.rcvd is not None
                assert replaced.value.rcvd.code == 4000
                await rig.client.delete(f"/v1beta/streams/{stream['id']}")
                with pytest.raises(ConnectionClosed) as ended:
                    await asyncio.wait_for(second.recv(), 10)
                assert ended.value.rcvd is not None
                assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (1000, "the stream has ended")
        assert live_of(rig).feed_of(stream["id"]) is None


async def test_a_source_that_leaves_is_forgotten_and_its_frames_stay() -> None:
    """The connection is cut without a word; the stream stays, for a camera that comes back."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        async with pushing(stream) as socket:
            await socket.send(jpeg())
            await socket.recv()
            socket.transport.abort()
        await until(lambda: live_of(rig).feed_of(stream["id"]) is None)
        assert len(stream_of(rig, stream["id"]).ring) == 1


def _film(path: Path, *, fps: int, frames: int) -> None:
    with av.open(str(path), "w") as container:
        track: Any = container.add_stream("libx264", rate=fps)
        track.width, track.height, track.pix_fmt = 64, 48, "yuv420p"
        for index in range(frames):
            picture = np.full((48, 64, 3), 40 + 10 * index, np.uint8)
            container.mux(track.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(track.encode(None))


async def test_a_film_is_published_at_its_own_pace(tmp_path: Path) -> None:
    """Ten pictures at ten a second: every one is stored, 0.1 s apart on the stream's clock, bright as it was, with the
    publisher's readings and an offset between the clocks; then the stream is gone."""
    film = tmp_path / "film.mp4"
    _film(film, fps=10, frames=10)
    async with live_gateway(NOWHERE) as rig:
        ids: list[str] = []
        frames: list[Any] = []

        def look(_: object) -> None:
            stream = stream_of(rig, ids[0])
            frames[:] = list(stream.ring)
            offsets.append(stream.offset)

        offsets: list[Any] = []
        published = await publish(film, gateway=rig.url, on_stream=ids.append, on_picture=look)
        assert (published.sent, published.stored + published.dropped.total()) == (
            10 - published.skipped,
            published.sent,
        )
        assert published.dropped == {}
        assert len(frames) >= 3
        steps = np.diff([frame.stream_ns / 1e6 for frame in frames])
        assert 50 < np.median(steps) < 500
        assert abs(level_of(frames[0].jpeg) - 40) < 4
        assert {"captured", "sent", "arrived", "stored"} <= set(frames[0].stamps)
        assert offsets[-1].bound_ns < 1e9
        assert (await rig.client.get(f"/v1beta/streams/{ids[0]}")).json()["end_reason"] == "deleted"
